"""What changes something on a host: shown before it is done, verified after, undone where that is possible.

An operation is a *plan* (``plan.Plan``): a list of steps, each with its risk and the literal signals,
commands and bytes, made without changing anything. A ``runner.Runner`` carries it out and publishes the
plan again after each change, so a step tracker, a dialog and a command line only ever draw a plan. What a
step does is data (``work``), so the journal can hold it and a later process can go on where this one ended.

How a screen uses it::

    plan = await stop.prepare(session, server, grammar)         # looks, changes nothing
    desk = Desk(session, Journal.open())                         # one a host, kept
    desk.subscribe(lambda: draw(desk.plan))
    await desk.perform(plan)                                     # or: desk.cancel()

``Plan.typing`` says what the operator must type first, and why; None: a plain "yes" is enough.
"""
