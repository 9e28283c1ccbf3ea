"""What changes a host: shown before, verified after, journalled.

May touch: the clock, a host by requests, the state folder.

An operation is a *plan* (``plan.Plan``): a list of steps, each with its risk and the literal signals,
commands and bytes, made without changing anything. A ``runner.Runner`` carries it out and publishes the
plan again after each change, so a step tracker, a dialog and a command line only ever draw a plan. What a
step does is data (``work``), so the journal can hold it and a later process can go on where this one ended.

How a screen uses it::

    operations = Operations(session, Journal())                  # one a host, kept
    offer = await operations.kill(server)                        # looks, changes nothing
    operations.desk.subscribe(lambda: draw(operations.desk.plan))
    await operations.perform(offer.plan)                         # or: operations.desk.cancel()

``Plan.typing`` says what the operator must type first, and why; None: a plain "yes" is enough.
"""
