import { randomInt } from "node:crypto";
import { createServer, type ListenOptions, type Server } from "node:net";

/** Above those of installations, below those that Linux gives to connections and to whoever asks for any port. */
const [first, last] = [13_000, 32_767];

/** Who has a port has it until its process ends: it may be used late, and again after a restart. */
const claims: Server[] = [];

/** Ports of 127.0.0.1 that nobody listens on and that no other test of this host gets while this process lives. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(first, last + 1);
    if ((await claim(port)) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

/** The claim is a socket without a file, which Linux removes with the process, however that ends. */
async function claim(port: number): Promise<boolean> {
  if (process.platform !== "linux") return true;
  const server = await listen({ path: `\0holdfast-test-port-${port}` });
  if (server !== undefined) claims.push(server.unref());
  return server !== undefined;
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen({ port, host: "127.0.0.1" });
  await new Promise<unknown>((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  return server !== undefined;
}

/** Undefined when somebody listens there already. */
function listen(where: ListenOptions): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(where, () => resolve(server));
  });
}
