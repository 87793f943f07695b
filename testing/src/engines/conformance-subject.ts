import { create } from "@bufbuild/protobuf";
import { type EngineUser, EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineMachine } from "./engine-machine.ts";

/** Properties of an engine that the conformance suite needs besides its driver. */
export interface ConformanceSubject {
  readonly name: string;
  /** Reason why the engine cannot run here; undefined if it can. */
  readonly skip: string | undefined;
  machine(settings: { users: EngineUser[]; allowedCidrs: string[] }): Promise<EngineMachine>;
  /** Connects over TLS, trusting the machine's authority only, and signs in; rejects if it cannot. */
  connect(machine: EngineMachine, options: ConnectOptions): Promise<ConformanceClient>;
  /** Tries to connect without TLS; rejects. */
  connectPlain(machine: EngineMachine, options: ConnectOptions): Promise<unknown>;
  /** The engine's own text of each refusal, so that no other failure passes for one. */
  readonly refusals: {
    /** Refusal of an address that the allow-list lacks. */
    readonly notAllowed: RegExp;
    readonly withoutTls: RegExp;
  };
  /** Beginning of the version that the engine reports, if it differs from the version of the catalog. */
  readonly ownVersion?: string;
  /** Undefined for an engine without users, whose clients connect with an empty name and password. */
  readonly users: SubjectUsers | undefined;
  /** A parameter that applies live and one that needs a restart, with values other than the defaults. */
  readonly live: readonly [name: string, value: string];
  readonly atStart: readonly [name: string, value: string];
  /** False for a driver without backups. */
  readonly hasBackups?: false;
  /** Statements of the query console; undefined for an engine without one. */
  readonly console?: {
    readonly database: string;
    /** Returns the number 1. */
    readonly oneRow: string;
    /** Returns twenty rows. */
    readonly twenty: string;
    readonly writing: string;
    readonly endless: string;
  };
}

/** Users of an engine, and its own texts of the refusals that they get. */
export interface SubjectUsers {
  /** Verifier that the engine stores instead of a password. */
  verifierOf(password: string): string;
  readonly wrongPassword: RegExp;
  /** Refusal of a sign-in as the platform's user, whose name no client may use. */
  readonly platformUser: RegExp;
  /** Refusal of a write by a user that may only read. */
  readonly mayNotWrite: RegExp;
}

/** The user in the format of the engine's driver. */
export function engineUser({ verifierOf }: SubjectUsers, username: string, role: string, password: string): EngineUser {
  return create(EngineUserSchema, { username, role, verifier: verifierOf(password) });
}

/** Resolves when the server has closed the session; rejects after half a minute. */
export async function ended(client: ConformanceClient): Promise<void> {
  const signal = AbortSignal.timeout(30_000);
  const timeout = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("the other side did not end the session")), { once: true });
  });
  await Promise.race([client.ended, timeout]);
}

/** Makes the running engine admit clients from these networks only. */
export async function allow(machine: EngineMachine, allowedCidrs: string[]): Promise<void> {
  machine.change({ allowedCidrs });
  await machine.writeConfig();
  await machine.driver.reload(machine.instance, machine.signal);
}

export interface ConnectOptions {
  readonly user: string;
  readonly password: string;
  /** Address that the connection comes from. */
  readonly from?: string;
  /** Name that the certificate must have. */
  readonly serverName?: string;
}

export interface ConformanceClient {
  write(key: string, value: string): Promise<void>;
  read(key: string): Promise<string | undefined>;
  /** Resolves when the client's writes survive a kill; absent for an engine that acknowledges no write before. */
  flush?(): Promise<void>;
  /** Resolves when the server closes the connection. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}
