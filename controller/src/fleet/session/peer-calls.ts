import { create } from "@bufbuild/protobuf";
import { Client, credentials, status as Code } from "@grpc/grpc-js";
import { createLastCall, type LastCall } from "@holdfast/mtls/last-call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { unaryCall } from "@holdfast/mtls/unary-call.ts";
import {
  type GetStandingRequest,
  GetStandingRequestSchema,
  type GetStandingResponse,
  GetStandingResponseSchema,
  type ListSilentRequest,
  ListSilentRequestSchema,
  type ListSilentResponse,
  ListSilentResponseSchema,
  type RunTaskRequest,
  RunTaskRequestSchema,
  type RunTaskResponse,
  RevokeRightRequestSchema,
  type RevokeRightRequest,
  type RevokeRightResponse,
  RevokeRightResponseSchema,
  RunTaskResponseSchema,
} from "@holdfast/proto/holdfast/control/v1/peer_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import { requirePeer, unary } from "@holdfast/mtls/rpc-handlers.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
import type { RenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { peerDefinition } from "./agent-definitions.ts";
import { NotAsked } from "../not-asked.ts";
import { type QuickTasks, tooManyWait } from "../task/quick-tasks.ts";
import type { Rights, Silence } from "./rights.ts";
import { type Session, unreachable } from "./session.ts";

export interface PeerCallsDeps {
  readonly installationId: string;
  readonly identity: RenewedIdentity;
  readonly trustBundle: () => string;
  readonly log: Log;
}

/** Calls to the other controllers, over their agent listeners. */
export interface PeerCalls {
  /**
   * Throws MACHINE_UNREACHABLE when the machine does not answer in time, and as NotAsked when that controller does not,
   * or holds no stream; RATE_LIMITED when it has too many tasks for the machine.
   */
  run(address: string, machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /** Whether the controller there has a lease; throws when it does not answer in time, or is of a release that cannot. */
  hasLease(address: string, timeoutMs: number): Promise<boolean>;
  /**
   * Has the controller there grant the machine nothing under this term; resolves with the milliseconds for which it has not. Throws when
   * it does not answer in time, or is of a release that cannot.
   */
  revokeRight(address: string, machineId: string, term: bigint, timeoutMs: number): Promise<number>;
  /** The primaries that the controller there has reason to take for silent; throws as `revokeRight` does. */
  listSilent(address: string, timeoutMs: number): Promise<ReadonlyMap<string, Silence>>;
  close(): void;
}

export function createPeerCalls({ installationId, identity, trustBundle, log }: PeerCallsDeps): PeerCalls {
  const clients = new Map<string, { readonly client: Client; readonly calls: LastCall }>();
  // A new certificate needs new connections; calls on the old ones end by themselves.
  const renewals = identity.subscribe(() => {
    for (const { calls } of clients.values()) calls.close();
    clients.clear();
  });

  function clientOf(address: string): { readonly client: Client; readonly calls: LastCall } {
    const known = clients.get(address);
    if (known !== undefined) return known;
    const { privateKey, certificate } = identity.current;
    const tls = credentials.createSsl(Buffer.from(trustBundle()), Buffer.from(privateKey), Buffer.from(certificate), {
      // Controllers move between hosts: what counts is who it is, not where.
      checkServerIdentity: (_host, peer) =>
        parseIdentity(peer.subjectaltname, installationId)?.kind === "controller"
          ? undefined
          : new Error("the peer is not a controller"),
    });
    const client = new Client(address, tls, {
      "grpc.enable_channelz": 0,
      // A result as large as an agent can send fits, so that RESOURCE_EXHAUSTED is always the peer's word.
      "grpc.max_receive_message_length": (4 << 20) + (64 << 10),
      // Only so that no IP address is sent as a server name; who it is, is checked above.
      "grpc.ssl_target_name_override": "controller",
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
    });
    const made = { client, calls: createLastCall(() => client.close()) };
    clients.set(address, made);
    return made;
  }

  return {
    async run(address, machineId, task, timeoutMs, signal) {
      const request = create(RunTaskRequestSchema, { machineId, task, timeoutMs });
      const { client, calls } = clientOf(address);
      const end = calls.begin();
      try {
        const { result } = await unaryCall(client, peerDefinition.runTask, request, timeoutMs + 500, signal);
        if (result !== undefined) return result;
      } catch (error) {
        log.debug("task not run by peer", { machine: machineId, peer: address, error: String(error) });
        if ((error as { code?: unknown }).code === Code.RESOURCE_EXHAUSTED) throw tooManyWait();
        throw new NotAsked("The controller that holds the machine's stream did not answer.");
      } finally {
        end();
      }
      throw unreachable("The machine did not answer in time.");
    },
    async hasLease(address, timeoutMs) {
      const { client, calls } = clientOf(address);
      const end = calls.begin();
      try {
        const request = create(GetStandingRequestSchema);
        return (await unaryCall(client, peerDefinition.getStanding, request, timeoutMs)).hasLease;
      } finally {
        end();
      }
    },
    async revokeRight(address, machineId, term, timeoutMs) {
      const { client, calls } = clientOf(address);
      const end = calls.begin();
      try {
        const request = create(RevokeRightRequestSchema, { machineId, term });
        const { ungrantedForMs } = await unaryCall(client, peerDefinition.revokeRight, request, timeoutMs);
        return Number(ungrantedForMs);
      } finally {
        end();
      }
    },
    async listSilent(address, timeoutMs) {
      const { client, calls } = clientOf(address);
      const end = calls.begin();
      try {
        const request = create(ListSilentRequestSchema);
        const { machines } = await unaryCall(client, peerDefinition.listSilent, request, timeoutMs);
        return new Map(
          machines.map(({ machineId, askedAgoMs, engineSilent }) => [
            machineId,
            { askedAgoMs: Number(askedAgoMs), isEngineSilent: engineSilent },
          ]),
        );
      } finally {
        end();
      }
    },
    close() {
      renewals.close();
      for (const { client } of clients.values()) client.close();
    },
  };
}

const longestMs = 600_000;

export interface PeerRpcsDeps {
  readonly installationId: string;
  readonly log: Log;
  readonly quickTasks: QuickTasks;
  /** The stream of a machine, if it is here and may be used. */
  readonly sessionOf: (machineId: string) => Session | undefined;
  readonly hasLease: () => boolean;
  readonly rights: Pick<Rights, "revoke" | "silent">;
}

/** PeerService: runs quick tasks for the other controllers on the streams that are here, and says whether it may. */
export function createPeerRpcs({ installationId, log, quickTasks, sessionOf, hasLease, rights }: PeerRpcsDeps) {
  return {
    getStanding: unary<GetStandingRequest, GetStandingResponse>("GetStanding", log, async (_request, call) => {
      requirePeer(call, installationId, "controller");
      return create(GetStandingResponseSchema, { hasLease: hasLease() });
    }),
    revokeRight: unary<RevokeRightRequest, RevokeRightResponse>("RevokeRight", log, async (request, call) => {
      requirePeer(call, installationId, "controller");
      const ungrantedForMs = BigInt(Math.floor(rights.revoke(request.machineId, request.term)));
      return create(RevokeRightResponseSchema, { ungrantedForMs });
    }),
    listSilent: unary<ListSilentRequest, ListSilentResponse>("ListSilent", log, async (_request, call) => {
      requirePeer(call, installationId, "controller");
      // Of a machine whose stream is elsewhere by now, that controller hears more.
      const here = [...rights.silent()].filter(([machineId]) => sessionOf(machineId) !== undefined);
      const machines = here.map(([machineId, { askedAgoMs, isEngineSilent }]) => ({
        machineId,
        askedAgoMs: BigInt(Math.floor(askedAgoMs)),
        engineSilent: isEngineSilent,
      }));
      return create(ListSilentResponseSchema, { machines });
    }),
    runTask: unary<RunTaskRequest, RunTaskResponse>("RunTask", log, async (request, call) => {
      requirePeer(call, installationId, "controller");
      const { machineId, task, timeoutMs } = request;
      if (task === undefined) throw new RpcFailure(Code.INVALID_ARGUMENT, "there is no task");
      const gone = new AbortController();
      call.on("cancelled", () => gone.abort());
      const running = quickTasks.run(machineId, task, Math.min(timeoutMs, longestMs), gone.signal);
      const result = await running.catch((error: unknown) => {
        log.debug("task not run for peer", { machine: machineId, error: String(error) });
        // The machine was asked: the caller must not ask again as if it had not been.
        if (error instanceof NotAsked || !(error instanceof HoldfastError) || error.key !== "MACHINE_UNREACHABLE")
          throw error;
        return undefined;
      });
      return create(RunTaskResponseSchema, result && { result });
    }),
  };
}
