import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode } from "dns-packet";

/** A DNS server of a test: its records can change with each query. */
export interface TestDnsServer {
  /** `host:port`. */
  readonly address: string;
  /** Queried names, in order. */
  readonly queried: readonly string[];
  close(): Promise<void>;
}

/** `answer` returns the records for a name; none means that the name does not exist. */
export async function startTestDnsServer(answer: (name: string) => readonly Answer[]): Promise<TestDnsServer> {
  const socket = createSocket("udp4");
  const queried: string[] = [];
  socket.on("message", (message, from) => {
    const query = decode(message);
    const question = query.questions?.[0];
    if (question === undefined) return;
    queried.push(question.name);
    const records = answer(question.name);
    const answers = records.filter(({ type }) => type === question.type || type === "CNAME");
    const flags = AUTHORITATIVE_ANSWER | (records.length === 0 ? 3 : 0);
    const { id = 0, questions = [] } = query;
    socket.send(encode({ type: "response", id, flags, questions, answers }), from.port, from.address);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.bind(0, "127.0.0.1", resolve);
  await promise;
  const { port } = socket.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    queried,
    close: () => new Promise((closed) => socket.close(() => closed())),
  };
}
