import { serveThread } from "@holdfast/common/worker-thread.ts";
import { examinePayloads, type PayloadVerdict } from "./examine-payloads.ts";
import type { PayloadBatch } from "./payload-checks.ts";

serveThread<PayloadBatch, PayloadVerdict>(({ bytes, lengths }) => {
  let at = 0;
  const payloads = lengths.map((length) => bytes.subarray(at, (at += length)));
  return { response: examinePayloads(payloads) };
});
