"""A network between two hosts, where the kernel has no netem: a delay, and losses.

far.py DELAY_MS LOST_OF: two interfaces, f0 and f1. What enters one leaves the other after the
delay, but for one of LOST_OF packets that enter f0 with data. It ends when its input does.
"""

import fcntl
import heapq
import os
import selectors
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

delay_s, lost_of = float(sys.argv[1]) / 1000, int(sys.argv[2])
ends = []
for name in (b"f0", b"f1"):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", name, IFF_TUN | IFF_NO_PI))
    ends.append(end)
selector = selectors.DefaultSelector()
for end in ends + [0]:
    selector.register(end, selectors.EVENT_READ)
print("ready", flush=True)
flying, number = [], 0
while True:
    left = flying[0][0] - time.monotonic() if flying else None
    for key, _ in selector.select(left if left is None else max(left, 0)):
        if key.fd == 0:
            sys.exit(0)
        try:
            while True:
                packet = os.read(key.fd, 65536)
                if key.fd == ends[0] and len(packet) > 200:
                    number += 1
                    if number % lost_of == lost_of // 2:
                        continue
                to = ends[1] if key.fd == ends[0] else ends[0]
                heapq.heappush(flying, (time.monotonic() + delay_s, number, to, packet))
        except BlockingIOError:
            pass
    while flying and flying[0][0] <= time.monotonic():
        _, _, to, packet = heapq.heappop(flying)
        try:
            os.write(to, packet)
        except OSError:
            pass
