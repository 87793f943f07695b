import { createAsyncIterable, type UniversalServerResponse } from "@connectrpc/connect/protocol";

/** Of an answer that refuses. */
const refusalBytes = 16 * 1024;
const toldChars = 256;
const unknownText = JSON.stringify({ code: "unknown", message: "the request could not be read" });

/**
 * Connect's own refusals repeat what they could not read, however long: such an answer keeps its code and the beginning
 * of its message.
 */
export async function boundedAnswer(answer: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, body } = answer;
  const header = new Headers(answer.header);
  const length = Number(header.get("content-length") ?? 0);
  if (status < 400 || body === undefined || length <= refusalBytes) return answer;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const isPlain = header.get("content-encoding") === null;
  const bounded = Buffer.from(isPlain ? shortened(Buffer.concat(chunks)) : unknownText);
  header.delete("content-encoding");
  header.set("content-length", String(bounded.length));
  return { ...answer, header, body: createAsyncIterable([bounded]) };
}

function shortened(body: Buffer): string {
  const { code, message }: { code?: unknown; message?: unknown } = JSON.parse(body.toString("utf8"));
  if (typeof code !== "string" || typeof message !== "string") return unknownText;
  return JSON.stringify({ code, message: `${message.slice(0, toldChars).toWellFormed()}…` });
}
