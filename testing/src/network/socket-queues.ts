import { readFileSync } from "node:fs";

/**
 * Bytes in the kernel's send and receive queues of the TCP connections over IPv4 that have one of the ports at one of
 * their ends. Source: /proc/net/tcp, whose addresses and queues are hexadecimal.
 */
export function socketQueueBytes(ports: readonly number[]): number {
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  return rows.reduce((sum, row) => {
    const [, local = "", remote = "", , queues = ""] = row.trim().split(/\s+/);
    const isIncluded = [local, remote].some((address) => ports.includes(hexadecimal(address.split(":")[1])));
    if (!isIncluded) return sum;
    return queues.split(":").reduce((bytes, queue) => bytes + hexadecimal(queue), sum);
  }, 0);
}

function hexadecimal(digits = ""): number {
  return Number.parseInt(digits, 16);
}
