import { once } from "node:events";
import type { Socket } from "node:net";
import { type Access, isWriting } from "../commands.ts";
import { headerBytes, messageBytesMax, opCodes, ProtocolError, readHeader } from "../protocol/message.ts";
import type { IndexReference } from "../protocol/duplicate-keys.ts";
import { withCorrectedErrors } from "../protocol/corrected-errors.ts";
import { readRequest, type Request } from "../protocol/request.ts";
import { type CommandError, asReplica, isGreeting, limitWrites, writeRefusal } from "../protocol/response.ts";
import { refusalOf } from "../refusal.ts";
import type { Accesses } from "./accesses.ts";
import { type Backend, openBackend } from "./backend.ts";
import { createByteSource } from "./byte-source.ts";
import { type Memory, type ReplyMemory, smallBytes } from "./memory.ts";
import type { ReplySizes } from "./reply-sizes.ts";
import { signInOf } from "./user-name.ts";

/** Max bytes of a message before a sign-in began. */
const unknownBytesMax = 64 << 10;
/** A client that sends or receives nothing for this long within a message loses its connection. */
const stallMs = 60_000;

export interface ConnectionDeps {
  /** Paths of the Unix sockets of the two processes of the engine. */
  readonly sockets: Readonly<Record<Access, string>>;
  readonly accesses: Pick<Accesses, "of" | "index">;
  readonly memory: Memory;
  readonly replySizes: ReplySizes;
  /** Time that a command waits for the memory of its reply. */
  readonly replyWaitMs: number;
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
/** Drivers repeat a read that gets this code. */
const noMemory: CommandError = {
  code: 262,
  codeName: "ExceededTimeLimit",
  message: "The replies to other commands use all memory for replies. Repeat the command, or use a larger plan.",
};
const noMemoryNeeded: ReplyMemory = { sending: () => undefined, release: () => undefined };
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
  let isInMessage = false;
  client.on("timeout", () => isInMessage && client.destroy());

  /** Runs work that reads a part of a message from the client, or writes one to it. */
  async function inMessage<T>(work: () => Promise<T>): Promise<T> {
    client.setTimeout(stallMs);
    isInMessage = true;
    try {
      return await work();
    } finally {
      isInMessage = false;
    }
  }

  async function serve(): Promise<void> {
    const source = createByteSource(client);
    let next = source.take(headerBytes);
    for (;;) {
      const header = await next;
      if (header === undefined) return;
      const size = sizeOf(header, signedIn === undefined ? unknownBytesMax : messageBytesMax);
      const memory = size <= smallBytes ? undefined : await deps.memory.request(size, closed.signal);
      try {
        const message = Buffer.allocUnsafe(size);
        message.set(header);
        if (!(await inMessage(() => source.fill(message.subarray(headerBytes))))) return;
        // Read ahead, so that the end of the connection ends a command in progress.
        next = source.take(headerBytes);
        next.then(
          (ahead) => ahead === undefined && backend?.end(),
          () => undefined,
        );
        await handle(message);
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
    const expected = deps.replySizes.expected(request);
    const memory = expected <= smallBytes ? noMemoryNeeded : await replyMemory(expected);
    if (memory === undefined) {
      if (!request.isUnacknowledged) await write(writeRefusal(request, noMemory));
      return;
    }
    try {
      if (!(await forward(message, request, memory))) client.destroy();
    } finally {
      memory.release();
    }
  }

  async function forward(message: Buffer, request: Request, memory: ReplyMemory): Promise<boolean> {
    if (signedIn !== undefined) deps.onCommand();
    backend ??= await openBackend(deps.sockets[signedIn?.access ?? "readonly"]);
    if (backend === undefined) return false;
    const size = await backend.send(message);
    if (size === undefined) return false;
    deps.replySizes.seen(request, size);
    memory.sending(size);
    const { receive } = backend;
    return inMessage(() =>
      receive(request.isUnacknowledged ? undefined : client, closed.signal, {
        bytesMax: isWriting(request.command) ? messageBytesMax : smallBytes,
        edited: (...all) => edited(request, ...all),
      }),
    );
  }

  /** Undefined if other replies use the memory for too long. */
  async function replyMemory(size: number): Promise<ReplyMemory | undefined> {
    const access = signedIn?.access ?? "readonly";
    const free = deps.memory.tryReply(size, access);
    if (free !== undefined) return free;
    const limit = AbortSignal.timeout(deps.replyWaitMs);
    try {
      return await deps.memory.reply(size, access, AbortSignal.any([closed.signal, limit]));
    } catch (error) {
      if (!limit.aborted) throw error;
      return undefined;
    }
  }

  /** The body of a response to a client, changed where the engine's would mislead drivers. */
  async function edited(request: Request, body: Buffer, opCode: number): Promise<Buffer> {
    if (isGreeting(request)) {
      limitWrites(body);
      const found = await state();
      return found?.isReplica === true ? asReplica(body, opCode) : body;
    }
    return opCode === opCodes.msg ? withCorrectedErrors(request, body, { isReplica, index }) : body;
  }

  const state = () => deps.accesses.of([]).catch(() => undefined);
  const index = (reference: IndexReference) => deps.accesses.index(reference).catch(() => undefined);

  /** Also true if that is unknown. */
  async function isReplica(): Promise<boolean> {
    return (await state())?.isReplica ?? true;
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
