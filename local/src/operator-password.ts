import { readFileSync } from "node:fs";
import { replaceFileSync } from "./files.ts";
import { layoutOf } from "./layout.ts";
import { bootstrapFileIn } from "./secrets.ts";

interface Operator {
  readonly username: string;
  readonly password: string;
}

/**
 * Stores the new password of the installation's operator for clients of this host and for the next start. Returns false
 * and changes nothing if the installation's operator is another user.
 */
export function saveOperatorPassword(dataDirectory: string, { username, password }: Operator): boolean {
  const { admin, keys } = layoutOf(dataDirectory);
  const files = [bootstrapFileIn(keys), admin].map((path) => ({ path, content: read(path) }));
  if (files.some(({ content }) => content.username !== username)) return false;
  for (const { path, content } of files)
    replaceFileSync(path, `${JSON.stringify({ ...content, password }, null, 2)}\n`, 0o600);
  return true;
}

function read(path: string): Operator {
  return JSON.parse(readFileSync(path, "utf8"));
}
