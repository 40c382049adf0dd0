"""options: what several programs here take on the command line, each with the same meaning."""

import os
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent.parent


def add_servers(parser, *names):
    """Add --reactord, and --NAME for each of these peers: haproxy, haproxy3, nginx."""
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="COMMAND")
    if "haproxy" in names:
        parser.add_argument("--haproxy", metavar="COMMAND", help="default: $HAPROXY, or %(default)s",
                            default=os.environ.get("HAPROXY", "/usr/sbin/haproxy"))
    if "haproxy3" in names:
        parser.add_argument("--haproxy3", default=os.environ.get("HAPROXY3"), metavar="COMMAND",
                            help='a second HAProxy, such as "chroot DIR /usr/sbin/haproxy" '
                            "(default: $HAPROXY3)")
    if "nginx" in names:
        parser.add_argument("--nginx", metavar="COMMAND", help="default: $NGINX, or %(default)s",
                            default=os.environ.get("NGINX", "/usr/sbin/nginx"))


def add_build(parser):
    """Add --build."""
    parser.add_argument("--build", type=Path, default=TOP / "build" / "bench", metavar="DIR",
                        help="where the bench programs are (default: %(default)s)")


def add_before_others(parser):
    """Add --before-others."""
    parser.add_argument("--before-others", action="store_true",
                        help="come before all other sessions of the machine (root)")
