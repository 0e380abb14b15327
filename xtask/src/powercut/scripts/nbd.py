"""Connects /dev/nbd0 with a disk at HOST PORT of so many BYTES; goes on in the background."""

import fcntl
import os
import socket
import sys
import time

# linux/nbd.h
SET_SOCK, SET_BLKSIZE, DO_IT, CLEAR_SOCK, SET_SIZE_BLOCKS, SET_FLAGS = (
    0xAB00, 0xAB01, 0xAB03, 0xAB04, 0xAB07, 0xAB0A,
)
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
SECTOR = 512

host, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
disk = socket.create_connection((host, port))
disk.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
device = os.open("/dev/nbd0", os.O_RDWR)
fcntl.ioctl(device, CLEAR_SOCK)
fcntl.ioctl(device, SET_BLKSIZE, SECTOR)
fcntl.ioctl(device, SET_SIZE_BLOCKS, size // SECTOR)
fcntl.ioctl(device, SET_FLAGS, HAS_FLAGS | SEND_FLUSH | SEND_FUA)
fcntl.ioctl(device, SET_SOCK, disk.fileno())
if os.fork() == 0:
    fcntl.ioctl(device, DO_IT)
    os._exit(0)
while open("/sys/block/nbd0/size").read().strip() == "0":
    time.sleep(0.01)
