"""A disk with a delay, as a block device of the network (NBD).

`disk.py serve ADDRESS PORT MIB DELAY_MS parallel|serial` answers each request so much later, all
at once or one after the other; `disk.py attach ADDRESS PORT MIB DEVICE` is for the kernel that
uses it.
"""

import asyncio
import fcntl
import socket
import struct
import sys

# linux/nbd.h
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
READ, WRITE, DISCONNECT = 0, 1, 2
SET_SOCK, SET_BLOCK_SIZE, DO_IT, SET_BLOCKS, SET_FLAGS = 0xAB00, 0xAB01, 0xAB03, 0xAB07, 0xAB0A
# There are flags; a flush is sent.
FLAGS = 1 | 4
BLOCK = 4096


async def serve(address, port, mib, delay_ms, order):
    disk = bytearray(mib << 20)

    async def connected(reader, writer):
        loop = asyncio.get_running_loop()
        free = loop.time()
        while True:
            head = await reader.readexactly(REQUEST.size)
            magic, _, kind, handle, at, size = REQUEST.unpack(head)
            assert magic == REQUEST_MAGIC
            if kind == DISCONNECT:
                return
            data = b""
            if kind == WRITE:
                disk[at:at + size] = await reader.readexactly(size)
            elif kind == READ:
                data = bytes(disk[at:at + size])
            begin = max(free, loop.time()) if order == "serial" else loop.time()
            free = begin + delay_ms / 1000
            loop.call_at(free, writer.write, REPLY.pack(REPLY_MAGIC, 0, handle) + data)

    server = await asyncio.start_server(connected, address, port, limit=8 << 20)
    print("disk ready", flush=True)
    async with server:
        await server.serve_forever()


def attach(address, port, mib, device):
    way = socket.create_connection((address, port))
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with open(device, "r+b", buffering=0) as disk:
        fcntl.ioctl(disk, SET_BLOCK_SIZE, BLOCK)
        fcntl.ioctl(disk, SET_BLOCKS, (mib << 20) // BLOCK)
        fcntl.ioctl(disk, SET_FLAGS, FLAGS)
        fcntl.ioctl(disk, SET_SOCK, way.fileno())
        fcntl.ioctl(disk, DO_IT)


match sys.argv[1:]:
    case ["serve", address, port, mib, delay_ms, order]:
        asyncio.run(serve(address, int(port), int(mib), float(delay_ms), order))
    case ["attach", address, port, mib, device]:
        attach(address, int(port), int(mib), device)
    case _:
        sys.exit(__doc__)
