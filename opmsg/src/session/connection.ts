import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { CapacityQueue } from "@holdfast/common/concurrency/capacity-queue.ts";
import type { Access } from "../commands.ts";
import { headerBytes, messageBytesMax, opCodes, ProtocolError, readHeader, writeMessage } from "../protocol/message.ts";
import { withCorrectedErrors } from "../protocol/corrected-errors.ts";
import { readRequest, type Request } from "../protocol/request.ts";
import { type CommandError, isGreeting, limitWrites, writeRefusal } from "../protocol/response.ts";
import { refusalOf } from "../refusal.ts";
import type { Accesses } from "./accesses.ts";
import { type ByteSource, createByteSource } from "./byte-source.ts";
import { signInOf } from "./user-name.ts";

/** Max bytes of a message before a sign-in began. */
const unknownBytesMax = 64 << 10;
/** Messages up to this size do not count toward the memory of all connections. */
const smallBytes = 64 << 10;

export interface ConnectionDeps {
  /** Paths of the Unix sockets of the two processes of the engine. */
  readonly sockets: Readonly<Record<Access, string>>;
  readonly accesses: Pick<Accesses, "of">;
  /** Memory for large messages of all connections. */
  readonly memory: CapacityQueue;
  readonly memoryBytes: number;
  /** Called for each command of a signed-in user that is forwarded. */
  onCommand(): void;
}

/** A user with the access that it had at its sign-in, and the engine as it was then. */
export interface SignedIn {
  readonly user: string;
  readonly access: Access;
  readonly engineStarted: string;
  readonly isReplica: boolean;
}

/** A client's connection. */
export interface Connection {
  /** The user who began to sign in last. */
  readonly signedIn: SignedIn | undefined;
  /** Resolves when the connection has ended. Rejects for a fault of the front end or the engine. */
  readonly ended: Promise<void>;
}

const authenticationFailed: CommandError = {
  code: 18,
  codeName: "AuthenticationFailed",
  message: "Authentication failed.",
};
const unreachable: CommandError = { code: 6, codeName: "HostUnreachable", message: "The engine does not respond." };

/**
 * Serves a client: one command at a time, each checked (`refusal.ts`) and forwarded to the process for the user's
 * access. A sign-in chooses the process by its user; the process verifies the password, and refuses commands of clients
 * who did not sign in. Before, greetings go to the process that only reads.
 */
export function serveConnection(client: Socket, deps: ConnectionDeps): Connection {
  let signedIn: Connection["signedIn"];
  let backend: Backend | undefined;
  const closed = new AbortController();
  client.once("close", () => closed.abort());
  client.on("error", () => client.destroy());

  async function serve(): Promise<void> {
    const source = createByteSource(client);
    let next = source.take(headerBytes);
    for (;;) {
      const header = await next;
      if (header === undefined) return;
      const size = sizeOf(header, signedIn === undefined ? unknownBytesMax : messageBytesMax);
      const memory =
        size <= smallBytes
          ? undefined
          : await deps.memory.acquire({ amount: size, limits: [{ key: "all", max: deps.memoryBytes }] }, closed.signal);
      try {
        const rest = await source.take(size - headerBytes);
        if (rest === undefined) return;
        // Read ahead, so that the end of the connection ends a command in progress.
        next = source.take(headerBytes);
        next.then(
          (ahead) => ahead === undefined && backend?.end(),
          () => undefined,
        );
        await handle(Buffer.concat([header, rest]));
      } finally {
        memory?.release();
      }
    }
  }

  async function handle(message: Buffer): Promise<void> {
    const request = readRequest(message);
    const refusal = (await signIn(request)) ?? refusalOf(request, signedIn);
    if (refusal !== undefined) {
      if (!request.isUnacknowledged) await write(writeRefusal(request, refusal));
      return;
    }
    if (signedIn !== undefined) deps.onCommand();
    backend ??= await openBackend(deps.sockets[signedIn?.access ?? "readonly"]);
    if (
      backend === undefined ||
      !(await backend.forward(message, request.isUnacknowledged ? undefined : client, closed.signal, (...all) =>
        edited(request, ...all),
      ))
    )
      client.destroy();
  }

  /** The body of a response to a client, changed where the engine's would mislead drivers. */
  async function edited(request: Request, body: Buffer, opCode: number): Promise<Buffer> {
    if (isGreeting(request)) limitWrites(body);
    else if (opCode === opCodes.msg) return withCorrectedErrors(body, { isReplica });
    return body;
  }

  /** Also true if that is unknown. */
  async function isReplica(): Promise<boolean> {
    const found = await deps.accesses.of([]).catch(() => undefined);
    return found?.isReplica ?? true;
  }

  /**
   * Another user gets a new backend, since a backend remains signed in until its next sign-in is complete: a dropped
   * user would keep it by beginning a sign-in as another one.
   */
  async function signIn(request: Request): Promise<CommandError | undefined> {
    const signIn = signInOf(request);
    if (signIn === undefined) return undefined;
    if (signIn.user === undefined) return authenticationFailed;
    const found = await deps.accesses.of([signIn.user]).catch(() => undefined);
    if (found === undefined) return unreachable;
    const access = found.users.get(signIn.user);
    if (access === undefined) return authenticationFailed;
    if (access !== (signedIn?.access ?? "readonly") || (signedIn !== undefined && signIn.user !== signedIn.user)) {
      backend?.end();
      backend = undefined;
    }
    signedIn = { user: signIn.user, access, engineStarted: found.started, isReplica: found.isReplica };
    return undefined;
  }

  async function write(bytes: Buffer): Promise<void> {
    if (!client.write(bytes)) await once(client, "drain", { signal: closed.signal });
  }

  async function run(): Promise<void> {
    try {
      await serve();
    } catch (error) {
      if (!closed.signal.aborted && !(error instanceof ProtocolError)) throw error;
    } finally {
      backend?.end();
      client.destroy();
    }
  }

  return {
    get signedIn() {
      return signedIn;
    },
    ended: run(),
  };
}

function sizeOf(header: Buffer, max: number): number {
  const { length } = readHeader(header);
  if (length <= headerBytes || length > max) throw new ProtocolError(`a message of ${length} bytes`);
  return length;
}

type ResponseEdit = (body: Buffer, opCode: number) => Promise<Buffer>;

/** A connection to a process of the engine. */
interface Backend {
  /**
   * Sends a message and passes its response on, or drops it without `to`. `edit` returns the body of a small response
   * to pass on. False if the connection ended before.
   */
  forward(message: Buffer, to: Socket | undefined, signal: AbortSignal, edit: ResponseEdit): Promise<boolean>;
  end(): void;
}

/** Undefined if the process does not listen. */
async function openBackend(path: string): Promise<Backend | undefined> {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
  } catch {
    return undefined;
  }
  socket.on("error", () => socket.destroy());
  const source: ByteSource = createByteSource(socket);
  return {
    async forward(message, to, signal, edit) {
      socket.write(message);
      const header = await source.take(headerBytes);
      if (header === undefined) return false;
      const { length, ...others } = readHeader(header);
      const rest = length - headerBytes;
      if (to !== undefined && rest <= smallBytes) {
        const body = await source.take(rest);
        if (body === undefined) return false;
        if (!to.write(writeMessage(others, await edit(body, others.opCode)))) await once(to, "drain", { signal });
        return true;
      }
      to?.write(header);
      return source.pass(rest, to, signal);
    },
    end: () => socket.destroy(),
  };
}
