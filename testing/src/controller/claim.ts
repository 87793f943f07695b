import { createServer, type ListenOptions, type Server } from "node:net";
import { waitUntil } from "../wait-until.ts";

/** A name stays claimed until the process ends: it may be used late, and again after a restart. */
const claims: Server[] = [];

/**
 * Claims a name for the rest of this process; false if another test of this host has it. The claim is an abstract
 * socket, which Linux removes with the process, however that ends.
 */
export async function claim(name: string): Promise<boolean> {
  if (process.platform !== "linux") return true;
  const server = await listen({ path: pathOf(name) });
  if (server !== undefined) claims.push(server.unref());
  return server !== undefined;
}

const claimedWork = new Set<string>();

/** Same as `claim`, for work that one process of the host does: true again in that process, for its next file. */
export async function claimWork(name: string): Promise<boolean> {
  if (claimedWork.has(name)) return true;
  if (!(await claim(name))) return false;
  claimedWork.add(name);
  return true;
}

/** Runs `run` once no other test of this host runs one under the same name; throws after `withinMs` of waiting. */
export async function oneAtATime<T>(name: string, run: () => Promise<T>, withinMs = 120_000): Promise<T> {
  if (process.platform !== "linux") return run();
  const turn = await waitUntil(`no other test does this: ${name}`, () => listen({ path: pathOf(name) }), {
    withinMs,
  });
  try {
    return await run();
  } finally {
    turn.close();
  }
}

const pathOf = (name: string) => `\0holdfast-test-${name}`;

/** A number below `count` that no other test of this host has of that kind, for names and addresses. */
export async function claimNumber(kind: string, count: number): Promise<number> {
  for (let number = 0; number < count; number += 1) if (await claim(`${kind}-${number}`)) return number;
  throw new Error(`all ${count} numbers of a ${kind} are in use`);
}

/** Listens; undefined if another process listens there already. */
export function listen(where: ListenOptions): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(where, () => resolve(server));
  });
}
