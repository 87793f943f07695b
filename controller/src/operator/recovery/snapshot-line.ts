/** A snapshot of the control plane is lines of JSON, compressed and sealed: one `begin`, keys, rows, one `end`. */
export type SnapshotLine =
  | { readonly line: "begin"; readonly installationId: string; readonly createdAt: number; readonly revision: string }
  | { readonly line: "key"; readonly key: string; readonly value: string }
  | { readonly line: "row"; readonly table: string; readonly row: Readonly<Record<string, unknown>> }
  | { readonly line: "end"; readonly keys: number; readonly rows: number; readonly history: boolean };

export const snapshotFormat = "holdfast control plane 1";
export const snapshotPrefix = "control-plane/";

export async function* linesToBytes(lines: AsyncIterable<SnapshotLine>): AsyncGenerator<Buffer> {
  for await (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Throws unless the last line is an `end` that counts what came before. */
export async function* bytesToLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotLine> {
  const decoder = new TextDecoder();
  let rest = "";
  let keys = 0;
  let rows = 0;
  let ended = false;
  for await (const chunk of bytes) {
    const texts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = texts.pop() ?? "";
    for (const text of texts) {
      const line: SnapshotLine = JSON.parse(text);
      if (line.line === "key") keys += 1;
      if (line.line === "row") rows += 1;
      ended = line.line === "end" && line.keys === keys && line.rows === rows;
      yield line;
    }
  }
  if (!ended || rest !== "") throw new Error("the snapshot is not complete");
}
