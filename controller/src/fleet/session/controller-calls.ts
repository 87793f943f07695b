import { create } from "@bufbuild/protobuf";
import { Client, credentials, status as Code } from "@grpc/grpc-js";
import { createIdleClose, type IdleClose } from "@holdfast/mtls/idle-close.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type GrpcMethod, unaryCall } from "@holdfast/mtls/grpc-service.ts";
import {
  type GetStandingRequest,
  GetStandingRequestSchema,
  type GetStandingResponse,
  GetStandingResponseSchema,
  type ListReconcilersRequest,
  ListReconcilersRequestSchema,
  type ListReconcilersResponse,
  ListReconcilersResponseSchema,
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
import type { ReconcilerStatus } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { parseIdentity } from "@holdfast/common/identity.ts";
import { requirePeer, RpcFailure, unary } from "@holdfast/mtls/rpc-handlers.ts";
import type { RenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { controllerDefinition } from "./agent-definitions.ts";
import { TaskNotSent } from "../task-not-sent.ts";
import { type QuickTasks, tooManyRequests } from "../task/quick-tasks.ts";
import type { PrimaryLeases, ControllerLeaseReport } from "./primary-leases.ts";
import { type AgentSession, unreachable } from "./session.ts";

export interface ControllerCallsDeps {
  readonly installationId: string;
  readonly identity: RenewedIdentity;
  readonly trustBundle: () => string;
  readonly log: Log;
}

/** Calls to other controllers, over their agent listeners. `address` is the host:port of such a listener. */
export interface ControllerCalls {
  /**
   * Runs a quick task over the controller's stream of the machine. Throws MACHINE_UNREACHABLE if the machine does not
   * respond in time (as TaskNotSent if the controller does not respond or has no stream), and RATE_LIMITED if too many
   * tasks wait there for the machine.
   */
  run(address: string, machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /** True if the controller has a lease. Throws if it does not respond in time. */
  hasLease(address: string, timeoutMs: number): Promise<boolean>;
  /**
   * Makes the controller refuse the machine primary leases under this term. Resolves with the milliseconds since its
   * last grant. Throws if it does not respond in time.
   */
  revokePrimaryLease(address: string, machineId: string, term: bigint, timeoutMs: number): Promise<number>;
  /** The controller's reports on primaries that are overdue or unresponsive, by machine id. Throws on a timeout. */
  listSilent(address: string, timeoutMs: number): Promise<ReadonlyMap<string, ControllerLeaseReport>>;
  /**
   * The reconcilers of the controller, or only reconcilers with failing keys. Throws if it does not respond in time.
   */
  listReconcilers(
    address: string,
    failing: boolean,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<readonly ReconcilerStatus[]>;
  close(): void;
}

export function createControllerCalls({
  installationId,
  identity,
  trustBundle,
  log,
}: ControllerCallsDeps): ControllerCalls {
  const clients = new Map<string, { readonly client: Client; readonly calls: IdleClose }>();
  // A new certificate needs new connections. The old ones are closed once their calls have ended.
  const renewals = identity.subscribe(() => {
    for (const { calls } of clients.values()) calls.close();
    clients.clear();
  });

  function clientOf(address: string): { readonly client: Client; readonly calls: IdleClose } {
    const cached = clients.get(address);
    if (cached !== undefined) return cached;
    const { privateKey, certificate } = identity.current;
    const tls = credentials.createSsl(Buffer.from(trustBundle()), Buffer.from(privateKey), Buffer.from(certificate), {
      // A controller can move to another host, so the identity in the certificate is checked instead of the host name.
      checkServerIdentity: (_host, peer) =>
        parseIdentity(peer.subjectaltname, installationId)?.kind === "controller"
          ? undefined
          : new Error("the peer is not a controller"),
    });
    const client = new Client(address, tls, {
      "grpc.enable_channelz": 0,
      // Above the maximum size of an agent's result, so that RESOURCE_EXHAUSTED is always an error of the controller.
      "grpc.max_receive_message_length": (4 << 20) + (64 << 10),
      // TLS forbids an IP address as server name (RFC 6066, section 3). The identity is checked above.
      "grpc.ssl_target_name_override": "controller",
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
    });
    const opened = { client, calls: createIdleClose(() => client.close()) };
    clients.set(address, opened);
    return opened;
  }

  /** Calls the method. The connection remains open until the call has ended, also after a renewal. */
  async function call<I, O>(
    address: string,
    method: GrpcMethod<I, O>,
    request: I,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<O> {
    const { client, calls } = clientOf(address);
    const end = calls.begin();
    try {
      return await unaryCall(client, method, request, timeoutMs, signal);
    } finally {
      end();
    }
  }

  return {
    async run(address, machineId, task, timeoutMs, signal) {
      const request = create(RunTaskRequestSchema, { machineId, task, timeoutMs });
      try {
        const { result } = await call(address, controllerDefinition.runTask, request, timeoutMs + 500, signal);
        if (result !== undefined) return result;
      } catch (error) {
        log.debug("task not run by its controller", { machine: machineId, controller: address, error: String(error) });
        if ((error as { code?: unknown }).code === Code.RESOURCE_EXHAUSTED) throw tooManyRequests();
        throw new TaskNotSent("The controller with the machine's stream did not respond.");
      }
      throw unreachable("The machine did not respond in time.");
    },
    async hasLease(address, timeoutMs) {
      const request = create(GetStandingRequestSchema);
      return (await call(address, controllerDefinition.getStanding, request, timeoutMs)).hasLease;
    },
    async revokePrimaryLease(address, machineId, term, timeoutMs) {
      const request = create(RevokeRightRequestSchema, { machineId, term });
      return Number((await call(address, controllerDefinition.revokeRight, request, timeoutMs)).ungrantedForMs);
    },
    async listSilent(address, timeoutMs) {
      const request = create(ListSilentRequestSchema);
      const { machines } = await call(address, controllerDefinition.listSilent, request, timeoutMs);
      return new Map(
        machines.map(({ machineId, requestedAgoMs, engineUnresponsive }) => [
          machineId,
          { requestedAgoMs: Number(requestedAgoMs), isEngineUnresponsive: engineUnresponsive },
        ]),
      );
    },
    async listReconcilers(address, failing, timeoutMs, signal) {
      const request = create(ListReconcilersRequestSchema, { failing });
      return (await call(address, controllerDefinition.listReconcilers, request, timeoutMs, signal)).reconcilers;
    },
    close() {
      renewals.close();
      for (const { client } of clients.values()) client.close();
    },
  };
}

const timeoutMaxMs = 600_000;

export interface ControllerRpcsDeps {
  readonly installationId: string;
  readonly log: Log;
  readonly quickTasks: QuickTasks;
  /** The machine's stream, if this controller has it and may act on it. */
  readonly sessionOf: (machineId: string) => AgentSession | undefined;
  readonly hasLease: () => boolean;
  readonly primaryLeases: Pick<PrimaryLeases, "revoke" | "suspects">;
  readonly reconcilers: (failing: boolean) => ReconcilerStatus[];
}

/**
 * The RPCs of PeerService: other controllers run quick tasks on the streams here, query the lease, and revoke primary
 * leases.
 */
export function createControllerRpcs(deps: ControllerRpcsDeps) {
  const { installationId, log, quickTasks, sessionOf, hasLease, primaryLeases } = deps;
  return {
    getStanding: unary<GetStandingRequest, GetStandingResponse>("GetStanding", log, async (_request, call) => {
      requirePeer(call, installationId, "controller");
      return create(GetStandingResponseSchema, { hasLease: hasLease() });
    }),
    revokeRight: unary<RevokeRightRequest, RevokeRightResponse>("RevokeRight", log, async (request, call) => {
      requirePeer(call, installationId, "controller");
      const ungrantedForMs = BigInt(Math.floor(primaryLeases.revoke(request.machineId, request.term)));
      return create(RevokeRightResponseSchema, { ungrantedForMs });
    }),
    listSilent: unary<ListSilentRequest, ListSilentResponse>("ListSilent", log, async (_request, call) => {
      requirePeer(call, installationId, "controller");
      // If a machine's stream moved, the controller that has it now reports on the machine.
      const here = [...primaryLeases.suspects()].filter(([machineId]) => sessionOf(machineId) !== undefined);
      const machines = here.map(([machineId, { requestedAgoMs, isEngineUnresponsive }]) => ({
        machineId,
        requestedAgoMs: BigInt(Math.floor(requestedAgoMs)),
        engineUnresponsive: isEngineUnresponsive,
      }));
      return create(ListSilentResponseSchema, { machines });
    }),
    listReconcilers: unary<ListReconcilersRequest, ListReconcilersResponse>(
      "ListReconcilers",
      log,
      async ({ failing }, call) => {
        requirePeer(call, installationId, "controller");
        return create(ListReconcilersResponseSchema, { reconcilers: deps.reconcilers(failing) });
      },
    ),
    runTask: unary<RunTaskRequest, RunTaskResponse>("RunTask", log, async (request, call) => {
      requirePeer(call, installationId, "controller");
      const { machineId, task, timeoutMs } = request;
      if (task === undefined) throw new RpcFailure(Code.INVALID_ARGUMENT, "the request has no task");
      const cancellation = new AbortController();
      call.on("cancelled", () => cancellation.abort());
      const running = quickTasks.run(machineId, task, Math.min(timeoutMs, timeoutMaxMs), cancellation.signal);
      const result = await running.catch((error: unknown) => {
        log.debug("task not run for a controller", { machine: machineId, error: String(error) });
        // The machine got the task, so the caller must not treat this as a task that was not sent.
        if (error instanceof TaskNotSent || !(error instanceof HoldfastError) || error.key !== "MACHINE_UNREACHABLE")
          throw error;
        return undefined;
      });
      return create(RunTaskResponseSchema, result && { result });
    }),
  };
}
