import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerQueries } from "../support/peer-queries.ts";

// The receiver: records the first arrival of each event by the number in its data; never responds to /hang.
const arrivals = new Map<number, bigint>();
let received = 0;
let hanging = 0;
let hangingMost = 0;
const number = /"n":(\d+)/;

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    if (request.url === "/hang") {
      hanging += 1;
      hangingMost = Math.max(hangingMost, hanging);
      return void response.once("close", () => (hanging -= 1));
    }
    const n = Number(number.exec(body)?.[1] ?? -1);
    received += 1;
    if (!arrivals.has(n)) arrivals.set(n, process.hrtime.bigint());
    response.end();
  });
});
answerQueries({
  counts: async () => ({ received, distinct: arrivals.size, hangingMost }),
  /** First arrival of each number, in nanoseconds of the monotonic clock as text; null for a missing one. */
  arrivals: async ({ from, to }: { from: number; to: number }) =>
    Array.from({ length: to - from }, (_, i) => arrivals.get(from + i)?.toString() ?? null),
  async clear() {
    arrivals.clear();
    received = 0;
    hangingMost = hanging;
  },
});
server.listen(0, "127.0.0.1", () =>
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
);
