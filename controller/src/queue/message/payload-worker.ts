import { answerAll } from "@holdfast/common/answer-all.ts";
import { judgePayloads, type PayloadVerdict } from "./judge-payloads.ts";
import type { PayloadQuestion } from "./payload-checks.ts";

answerAll<PayloadQuestion, PayloadVerdict>(({ bytes, lengths }) => {
  let at = 0;
  const payloads = lengths.map((length) => bytes.subarray(at, (at += length)));
  return { answer: judgePayloads(payloads) };
});
