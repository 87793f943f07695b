import { join } from "node:path";
import type { RunProgram } from "../../os/program.ts";
import type { Companion, Listener } from "../engine-driver.ts";

/**
 * TLS front of an engine that has no rules for addresses: HAProxy, a companion that listens for clients in its place.
 *
 * A driver describes the front as a table (`Front`). From that table come the files (front-config.ts) and all changes
 * of a running front (front-commands.ts), so that the two never differ. A listener that terminates TLS forwards plain
 * bytes, or a second TLS connection, to its backend; a listener that passes TLS on leaves the handshake to the engine.
 * Both check the address of a client before the first byte of TLS.
 */
export interface Front<BackendName extends string = string> {
  /** Name of the companion and of its configuration file, `listener` by default. */
  readonly name?: string;
  /** Node whose agent writes the files. */
  readonly nodeId: string;
  /** Path of HAProxy's executable. */
  readonly program: string;
  /** Directory of the configuration and of its lists. */
  readonly configDirectory: string;
  /** Unix socket for commands. */
  readonly commandSocket: string;
  /** Certificate (`.crt`) and, beside it under the same name, key (`.key`) of all listeners that terminate TLS. */
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly vcpu: number;
  /** Limit of connections over all listeners. */
  readonly connectionLimit: number;
  /** Comment of the configuration on the engine's own limit of idle sessions; HAProxy's is 24 days. */
  readonly idleComment: string;
  readonly listeners: readonly FrontListener<BackendName>[];
  readonly backends: Readonly<Record<BackendName, FrontBackend>>;
}

export type FrontListener<BackendName extends string = string> =
  | TerminatingListener<BackendName>
  | TlsPassthroughListener<BackendName>;

interface ListenerBase<BackendName extends string> {
  readonly name: string;
  readonly addresses: readonly Listener[];
  /** Unix socket at which other fronts of this machine forward connections, each after its client's address. */
  readonly forwardedSocket?: string;
  readonly backend: BackendName;
  /** Connection limit of this listener, in addition to the front's. */
  readonly connectionLimit?: number;
}

export interface TerminatingListener<BackendName extends string = string> extends ListenerBase<BackendName> {
  readonly mode: "terminate";
  readonly allows: AllowedNetworks | AllowedCertificates;
  /** Present: HAProxy forwards requests of HTTP/1.1, under these rules, in place of bytes. */
  readonly http?: HttpRules;
}

/** Rules for requests. */
export interface HttpRules {
  /** Lines of HAProxy's frontend, in its configuration language. They may read `list`. */
  readonly rules: readonly string[];
  /** A list of words that changes while HAProxy runs. */
  readonly list: { readonly file: string; readonly words: readonly string[] };
}

/** The front never sees a certificate of the client, so only addresses are checked. */
export interface TlsPassthroughListener<BackendName extends string = string> extends ListenerBase<BackendName> {
  readonly mode: "pass";
  readonly allows: AllowedNetworks;
  /**
   * True for a listener of other fronts, to which `allows` applies. They send the address of their client first
   * (PROXY protocol), which the next front behind this one checks.
   */
  readonly takesClientAddress?: true;
}

/** Clients by address. Listeners with the same file have the same list. */
export interface AllowedNetworks {
  readonly by: "network";
  /** Name of the list's file in the configuration directory. */
  readonly file: string;
  readonly cidrs: readonly string[];
}

/** Clients by the common name of a certificate that one of the authorities signed. */
export interface AllowedCertificates {
  readonly by: "certificate";
  readonly file: string;
  readonly commonNames: readonly string[];
  /** Path of the authorities' certificates, PEM. */
  readonly authorityFile: string;
}

/**
 * The engine's own entry: a Unix socket, or a port for which the front may have a client certificate; or other fronts,
 * of which those in use change while HAProxy runs.
 */
export type FrontBackend =
  | { readonly socket: string }
  | { readonly fronts: readonly NextFront[] }
  | {
      readonly address: Listener;
      /** Certificate with its key in one file, and authority of the engine's certificate: paths of PEM files. */
      readonly tls?: { readonly certificateFile: string; readonly authorityFile: string };
      /** Present: an engine of HTTP, to which clients are forwarded only while it serves. */
      readonly check?: HttpCheck;
    };

/**
 * Until `admitClients`, and later while the engine refuses the check, HAProxy answers each request itself: 503 with
 * `Retry-After`, after which the connection ends. Connections that it forwarded before continue.
 */
export interface HttpCheck {
  /** Path that the engine answers with a status below 400 while it serves. */
  readonly path: string;
  /** JSON of the answer to clients while it does not. */
  readonly refusal: string;
}

/** Another front to which connections may be forwarded, each after its client's address (PROXY protocol). */
export interface NextFront {
  readonly name: string;
  /** A listener's `forwardedSocket`, or the address of one that takes clients' addresses. */
  readonly at: { readonly socket: string } | { readonly address: Listener; readonly sourceAddress: string };
  readonly isInUse: boolean;
}

/** Name of HAProxy's configuration in the configuration directory. */
export const configName = ({ name = "listener" }: Front): string => `${name}.cfg`;

/** The front as a companion of the engine. */
export function frontCompanion(front: Front): Companion {
  const { name = "listener", program, configDirectory, listeners } = front;
  const hasLowPort = listeners.some(({ addresses }) => addresses.some(({ port }) => port < 1_024));
  return {
    name,
    ...(hasLowPort && { role: "front" }),
    command: {
      argv: [program, "-db", "-f", join(configDirectory, configName(front))],
      env: { LC_ALL: "C", TZ: "UTC" },
      cwd: "/",
    },
    // HAProxy has no handler for SIGTERM, and the kernel drops unhandled signals to the first process of a namespace.
    stop: { signal: "SIGUSR1", graceMs: 2_000 },
  };
}

/** A list of the front, each file once. */
export interface FrontList {
  readonly by: "network" | "certificate" | "word";
  readonly file: string;
  readonly entries: readonly string[];
}

/** The lists of all listeners. */
export function listsOf({ listeners }: Pick<Front, "listeners">): FrontList[] {
  const byFile = new Map<string, FrontList>();
  for (const listener of listeners) {
    const { allows } = listener;
    if (listener.mode === "terminate" && listener.http !== undefined) {
      const { file, words } = listener.http.list;
      byFile.set(file, { by: "word", file, entries: words });
    }
    const entries = allows.by === "network" ? allows.cidrs : allows.commonNames;
    byFile.set(allows.file, { by: allows.by, file: allows.file, entries });
  }
  return [...byFile.values()];
}

/** Reason why no front can run, such as HAProxy that is not installed; undefined if one can. */
export async function missingFront(run: RunProgram, program: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    await run([program, "-v"], { signal });
    return undefined;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `the allow-list cannot be enforced here without HAProxy: ${why}`;
  }
}
