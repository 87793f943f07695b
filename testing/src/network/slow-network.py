"""Delays and loses packets: slow-network.py QUEUE DELAY_MS LOSS_PCT

The kernel reports the number of each packet that a rule sends to the queue, and buffers the packet until the verdict.
So the packet itself is neither read nor copied here. Prints "ready" once it serves the queue.
"""

import heapq
import random
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER = 12
SOL_NETLINK, NETLINK_NO_ENOBUFS = 270, 5
QUEUE_SUBSYSTEM = 3 << 8
PACKET, VERDICT, CONFIG = 0, 1, 2
CFG_COMMAND, CFG_PARAMS, CFG_LENGTH = 1, 2, 3
PACKET_HEADER, VERDICT_HEADER = 1, 2
BIND, COPY_META = 1, 1
DROP, ACCEPT = 0, 1
MAX_QUEUED_PACKETS = 100_000


def attribute(kind, value):
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)


def message(kind, queue, *attributes):
    body = struct.pack("=BBH", 0, 0, socket.htons(queue)) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), QUEUE_SUBSYSTEM | kind, 1, 0, 0) + body


def packet_ids(data):
    """Numbers of the packets in the netlink messages."""
    while len(data) >= 16:
        size, kind = struct.unpack_from("=IH", data)
        at = 20
        while kind == QUEUE_SUBSYSTEM | PACKET and at + 4 <= size:
            length, attribute_kind = struct.unpack_from("=HH", data, at)
            if attribute_kind == PACKET_HEADER:
                yield struct.unpack_from("!I", data, at + 4)[0]
            at += (length + 3) & ~3
        data = data[(size + 3) & ~3 :]


def serve(queue, delay_s, loss):
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    link.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    link.bind((0, 0))
    for setting in (
        attribute(CFG_COMMAND, struct.pack("!BBH", BIND, 0, 0)),
        attribute(CFG_PARAMS, struct.pack("!IB", 0, COPY_META)),
        attribute(CFG_LENGTH, struct.pack("!I", MAX_QUEUED_PACKETS)),
    ):
        link.send(message(CONFIG, queue, setting))
    print("ready", flush=True)

    delayed = []
    while True:
        wait_s = max(0, delayed[0][0] - time.monotonic()) if delayed else None
        readable, _, _ = select.select([link], [], [], wait_s)
        now = time.monotonic()
        if readable:
            for packet in packet_ids(link.recv(1 << 16)):
                heapq.heappush(delayed, (now + delay_s, packet))
        while delayed and delayed[0][0] <= now:
            _, packet = heapq.heappop(delayed)
            verdict = DROP if random.random() < loss else ACCEPT
            link.send(message(VERDICT, queue, attribute(VERDICT_HEADER, struct.pack("!II", verdict, packet))))


serve(int(sys.argv[1]), float(sys.argv[2]) / 1000, float(sys.argv[3]) / 100)
