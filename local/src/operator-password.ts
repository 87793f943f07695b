import { readFileSync } from "node:fs";
import { writeAtomically } from "./files.ts";
import { layoutOf } from "./layout.ts";
import { bootstrapFileIn } from "./secrets.ts";

interface Operator {
  readonly username: string;
  readonly password: string;
}

/**
 * Writes the new password of the installation's own operator where clients of this host and the next start read it. False,
 * and nothing changed, when the installation's operator is somebody else.
 */
export function keepOperatorPassword(dataDirectory: string, { username, password }: Operator): boolean {
  const { admin, keys } = layoutOf(dataDirectory);
  const files = [bootstrapFileIn(keys), admin].map((path) => ({ path, content: read(path) }));
  if (files.some(({ content }) => content.username !== username)) return false;
  for (const { path, content } of files)
    writeAtomically(path, `${JSON.stringify({ ...content, password }, null, 2)}\n`, 0o600);
  return true;
}

function read(path: string): Operator {
  return JSON.parse(readFileSync(path, "utf8"));
}
