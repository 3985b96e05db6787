"""Addresses to listen on, as the settings write them."""

import ipaddress
import socket


def split_address(field: str, address: str) -> tuple[str, int]:
    """Splits HOST:PORT ("[::1]:50051" too). Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{field} {address!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it; names other than localhost count as reachable."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_bindable(host: str, port: int) -> None:
    """Raises OSError when the address is taken, unknown or not of this host."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server itself: TIME_WAIT is no obstacle
        probe.bind(address)
