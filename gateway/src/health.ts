import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "@holdfast/proto/grpc/health/v1/health_pb.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { pause } from "./pause.ts";
import type { StreamRateLimit } from "./public-rate-limit.ts";

const watchIntervalMs = 1_000;

/** Adds grpc.health.v1 for the server (the empty name) and each service; it needs no credential. */
export function addHealth(router: ConnectRouter, deps: GatewayDeps, rateLimit: StreamRateLimit): void {
  const names = new Set(["", ...deps.services.map((served) => served.service.typeName)]);
  const statusOf = (name: string) =>
    names.has(name) ? (deps.ready() ? Serving.SERVING : Serving.NOT_SERVING) : Serving.SERVICE_UNKNOWN;

  const options = { requestGate: rateLimit.take };
  const implementation: ServiceImpl<typeof Health> = {
    check({ service }) {
      if (!names.has(service)) throw new ConnectError("no such service", Code.NotFound);
      return { status: statusOf(service) };
    },
    list() {
      return { statuses: Object.fromEntries([...names].map((name) => [name, { status: statusOf(name) }])) };
    },
    async *watch({ service }, context) {
      const release = rateLimit.stream(context);
      try {
        let last: Serving | undefined;
        while (!context.signal.aborted) {
          const status = statusOf(service);
          if (status !== last) yield { status };
          last = status;
          await pause(watchIntervalMs, context.signal);
        }
      } finally {
        release();
      }
    },
  };
  router.service(Health, implementation, options);
}
