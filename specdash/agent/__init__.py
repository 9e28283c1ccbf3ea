"""What runs on the host: Python 3.6, standard library only.

May touch: that host; nothing else of specdash.

It reads and acts; it decides nothing. It is sent through stdin of one SSH session channel, together
with NVML's Python binding: it is itself never a file there, and looking writes none.

Requests, one JSON object a line, ``r`` names the request; those with an ``id`` are answered by a
``reply`` frame:

``{"r":"ping","n":7}``
    Answered by ``{"t":"pong","n":7}`` at once. Without any request for 60 s the agent ends by itself.
``{"r":"watch","match":["regex", …],"env":["regex", …],"interval":1.0}``
    Which processes are of interest: a regular expression searched in the command line (argv joined by
    blanks, or the process title). Matching processes, their descendants and the owners of GPU memory are
    reported in ``processes`` frames. ``env``: names of variables whose values may be sent.
``{"r":"tail","path":"/var/log/x.log","backlog":8388608,
"cursor":{"file":"1:2","offset":0,"head":"sha1","tail":"sha1"}|null}``
    Follow a file: from the cursor where the file is still the same, else from ``backlog`` bytes before
    the end, at the first whole line. Bytes come as ``log`` frames; where the backlog is long, a ``glimpse``
    frame with the last lines comes before them.
``{"r":"untail","path":…}``
``{"r":"ack","path":…,"offset":N}``
    Credit: the agent has at most 1 MiB of unacknowledged log bytes of a path under way.
``{"r":"poll","server":"key","host":"127.0.0.1","port":30000,"key_env":null,
"calls":[{"path":"/health","every":2.0,"limit":3.0,"keep":["vllm:num_requests"],"body":2048}, …]}``
    Ask the server regularly, one request in flight per server; the path ``connect`` is a bare TCP connect.
    ``keep``: of a Prometheus text only lines with these prefixes. Replaces the server's earlier polls.
    ``key_env``: the variable that holds the API key, in the agent's environment or in that of the server's
    main process (where the key is ``pid:start``); the key itself goes into no frame.
``{"r":"unpoll","server":"key"}``
``{"r":"ports","ports":[30000]}``
    Ports that servers want: who else listens on one is reported in ``processes`` frames, too.
``{"r":"refresh"}``
    Sample everything now.
``{"r":"token","id":…,"server":"key","host":…,"port":…,"path":"/v1/completions","body":"{…}","limit":30}``
    One POST, one generated token: answered by an ``http`` frame with that path, then the reply. ``key``: the
    API key itself, instead of what the variable holds, where a command on the operator's machine printed it.

Requests that look closer, and those that change something, are described in ``acts``.
"""

PROTOCOL = 1
