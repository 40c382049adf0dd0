"""Which themes of the integration tests cover a source: by the start of its name, else by its layer."""

LAYERS = {
    "base": ["echo", "config"],
    "engine": ["threads", "echo"],
    "net": ["echo", "proxy", "ends"],
    "stats": ["accesslog", "logs"],
    "tls": ["proxy"],
    "limits": ["limits", "access"],
    "balance": ["balance", "upstream"],
    "check": ["checks", "down"],
    "upstream": ["upstream", "balance"],
    "names": ["names"],
    "handlers": ["pipeline"],
    "service": ["proxy", "ends"],
    "listen": ["listen", "limits"],
    "sessions": ["threads", "limits"],
    "server": ["start", "stop", "limits"],
    "handover": ["upgrade", "start"],
    "config": ["config", "broken"],
    "daemon": ["start", "logs"],
}

SOURCES = {
    "net/acceptor": ["listen", "limits"],
    "net/address": ["listen", "sockets"],
    "net/cidr": ["access", "proxyproto"],
    "net/connector": ["upstream", "retry"],
    "net/dns": ["names"],
    "net/name_service": ["names"],
    "net/pipe_pool": ["splice"],
    "net/proxy_header": ["proxyproto"],
    "net/resolve": ["names"],
    "net/sock": ["sockets", "listen", "inherited"],
    "net/splice": ["splice"],
    "net/srv": ["names"],
    "handlers/executor_handler": ["pipeline", "hang"],
    "handlers/fault_handler": ["faults"],
    "handlers/idle_handler": ["pipeline", "timeouts"],
    "handlers/proxy_protocol": ["proxyproto"],
    "service/mirror": ["mirror"],
    "service/proxy_retry": ["retry"],
    "service/session_access_log": ["accesslog"],
    "service/session_timer": ["timeouts"],
    "limits/throttle": ["bandwidth"],
    "limits/acl": ["access"],
    "service/proxy_attach": ["proxyproto"],
    "service/stale_retry": ["spare"],
    "balance/balancer": ["balance"],
    "balance/ejection": ["ejection"],
    "balance/retry_budget": ["retry"],
    "upstream/spare": ["spare"],
    "balance/wait_queue": ["waiting"],
    "server/checks": ["checks"],
    "sessions/overload": ["overload"],
    "sessions/eviction": ["limits"],
    "listen/socket_store": ["inherited"],
    "server/spares": ["spare"],
    "server/threads": ["threads"],
    "sessions/worker": ["threads", "hang"],
    "daemon/access_logs": ["accesslog"],
    "daemon/fd_store": ["inherited"],
    "daemon/inherited": ["inherited"],
    "daemon/log_target": ["logs"],
    "daemon/privileges": ["start", "sockets"],
    "daemon/run": ["start", "stop"],
}


def themes_of(source):
    """The themes for src/LAYER/NAME.c, the likeliest first."""
    name = source.removeprefix("src/").removesuffix(".c")
    starts = [start for start in SOURCES if name.startswith(start)]
    return SOURCES[max(starts, key=len)] if starts else LAYERS[name.split("/")[0]]
