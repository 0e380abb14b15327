"""Runs a command as the unit's RestrictAddressFamilies= lets it: families.py UNIT COMMAND...

socket(2) of any other family fails with EAFNOSUPPORT, as systemd.exec(5) has it: a seccomp filter.
"""

import ctypes
import os
import platform
import re
import socket
import struct
import sys

SOCKET_CALL = {"x86_64": 41, "aarch64": 198}[platform.machine()]
EAFNOSUPPORT = 97
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# struct seccomp_data: the number of the call, and the low half of its first argument.
NUMBER_AT, FAMILY_AT = 0, 16


def families(unit):
    words = re.search(r"^RestrictAddressFamilies=(.*)$", open(unit).read(), re.M).group(1).split()
    # Python has no names of its own for some.
    return [int(getattr(socket, word, {"AF_NETLINK": 16}.get(word, -1))) for word in words]


def program(allowed):
    """Of instructions (code, jump if true, jump if false, value)."""
    checks = len(allowed)
    yield LOAD_WORD, 0, 0, NUMBER_AT
    yield JUMP_IF_EQUAL, 0, checks + 2, SOCKET_CALL
    yield LOAD_WORD, 0, 0, FAMILY_AT
    for at, family in enumerate(allowed):
        yield JUMP_IF_EQUAL, checks - at, 0, family
    yield RETURN, 0, 0, ERRNO | EAFNOSUPPORT
    yield RETURN, 0, 0, ALLOW


def main():
    unit, command = sys.argv[1], sys.argv[2:]
    code = b"".join(struct.pack("HBBI", *step) for step in program(families(unit)))
    instructions = ctypes.create_string_buffer(code, len(code))
    filter_ = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    unsigned = ctypes.c_ulong
    for option, value, pointer in [
        (PR_SET_NO_NEW_PRIVS, 1, None),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_)),
    ]:
        if libc.prctl(option, unsigned(value), pointer or unsigned(0), unsigned(0), unsigned(0)):
            sys.exit(f"prctl({option}): {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


main()
