import { existsSync } from "node:fs";
import { join } from "node:path";
import { ensureGoProgram, type GoProgram, goProgramDirectory } from "./go-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { claim } from "../controller/claim.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { waitUntil } from "../wait-until.ts";

const loki: GoProgram = {
  module: "github.com/grafana/loki/v3",
  version: "v3.7.8",
  sum: "h1:bJ0WFWVOjgvG/jYmT9fIX15SYXXDwuEu/IMgTwMA97U=",
  package: "github.com/grafana/loki/v3/cmd/loki",
  dropReplaces: ["github.com/grafana/loki/pkg/push"],
};
const buildMs = 1_800_000;

/** Path of Grafana Loki's program, built at the first call (some minutes); `{ why }` where this host cannot have it. */
export async function lokiProgram(): Promise<string | { readonly why: string }> {
  const imagesDir = imagesDirectory(process.env);
  const isThere = async () => existsSync(goProgramDirectory(loki, imagesDir)) || claim("loki");
  await waitUntil("the program of Loki is built", isThere, { withinMs: buildMs, everyMs: 500 });
  try {
    const progress = (line: string) => console.error(line);
    return join(await ensureGoProgram(loki, { imagesDir, uid: testUid, asRoot, progress }), "loki");
  } catch (error) {
    if (error instanceof ImageImpossible) return { why: error.message };
    throw error;
  }
}
