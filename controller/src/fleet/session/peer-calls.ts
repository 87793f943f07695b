import { create } from "@bufbuild/protobuf";
import { Client, credentials, status as Code } from "@grpc/grpc-js";
import { createLastCall, type LastCall } from "@holdfast/common/last-call.ts";
import type { Log } from "@holdfast/common/log.ts";
import { unaryCall } from "@holdfast/common/unary-call.ts";
import {
  type GetStandingRequest,
  GetStandingRequestSchema,
  type GetStandingResponse,
  GetStandingResponseSchema,
  type RunTaskRequest,
  RunTaskRequestSchema,
  type RunTaskResponse,
  RunTaskResponseSchema,
} from "@holdfast/proto/holdfast/control/v1/peer_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import { requirePeer, unary } from "../../listener/rpc-handlers.ts";
import { RpcFailure } from "../../listener/rpc-status.ts";
import type { RenewedIdentity } from "../../pki/renewed-identity.ts";
import { peerDefinition } from "./agent-definitions.ts";
import { type QuickTasks, tooManyWait } from "../task/quick-tasks.ts";
import { unreachable } from "./session.ts";

export interface PeerCallsDeps {
  readonly installationId: string;
  readonly identity: RenewedIdentity;
  readonly trustBundle: () => string;
  readonly log: Log;
}

/** Calls to the other controllers, over their agent listeners. */
export interface PeerCalls {
  /**
   * Throws MACHINE_UNREACHABLE when that controller does not hold the stream, or no answer came in time; RATE_LIMITED when it
   * has too many tasks for the machine.
   */
  run(address: string, machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /** Whether the controller there has a lease; throws when it does not answer in time, or is of a release that cannot. */
  hasLease(address: string, timeoutMs: number): Promise<boolean>;
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
      } finally {
        end();
      }
      throw unreachable("The controller that holds the machine's stream did not answer.");
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
    close() {
      renewals.close();
      for (const { client } of clients.values()) client.close();
    },
  };
}

const longestMs = 600_000;

/** PeerService: runs quick tasks for the other controllers on the streams that are here, and says whether it may. */
export function createPeerRpcs(installationId: string, log: Log, quickTasks: QuickTasks, hasLease: () => boolean) {
  return {
    getStanding: unary<GetStandingRequest, GetStandingResponse>("GetStanding", log, async (_request, call) => {
      requirePeer(call, installationId, "controller");
      return create(GetStandingResponseSchema, { hasLease: hasLease() });
    }),
    runTask: unary<RunTaskRequest, RunTaskResponse>("RunTask", log, async (request, call) => {
      requirePeer(call, installationId, "controller");
      const { machineId, task, timeoutMs } = request;
      if (task === undefined) throw new RpcFailure(Code.INVALID_ARGUMENT, "there is no task");
      const gone = new AbortController();
      call.on("cancelled", () => gone.abort());
      const result = await quickTasks.run(machineId, task, Math.min(timeoutMs, longestMs), gone.signal);
      return create(RunTaskResponseSchema, { result });
    }),
  };
}
