import type { EngineUser } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineMachine } from "../../../test/support/engines/engine-machine.ts";

/** What the suite needs to know of one engine besides its driver. */
export interface ConformanceSubject {
  readonly name: string;
  /** Why it cannot run here; undefined when it can. */
  readonly skip: string | undefined;
  machine(settings: { users: EngineUser[]; allowedCidrs: string[] }): Promise<EngineMachine>;
  /** What the engine keeps instead of a password. */
  verifierOf(password: string): string;
  /** Signs in over TLS and trusts the machine's authority only; rejects when it does not get in. */
  connect(machine: EngineMachine, options: ConnectOptions): Promise<ConformanceClient>;
  /** Tries to sign in without TLS; rejects. */
  connectPlain(machine: EngineMachine, options: ConnectOptions): Promise<unknown>;
  /** A parameter that is taken live, with a value other than the default, and one that needs a restart. */
  readonly live: readonly [name: string, value: string];
  readonly atStart: readonly [name: string, value: string];
  /** Statements of the query console; undefined for an engine without one. */
  readonly console?: {
    readonly database: string;
    /** Answers the number 1. */
    readonly one: string;
    /** Answers twenty rows. */
    readonly twenty: string;
    readonly writing: string;
    readonly endless: string;
  };
}

/** A machine whose running engine admits clients from these networks alone. */
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
  /** Resolves when the other side ended it. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}
