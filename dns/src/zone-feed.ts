import { create } from "@bufbuild/protobuf";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Feed } from "@holdfast/feed/follow.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import {
  type FollowRequest,
  FollowRequestSchema,
  type ZoneBatch,
  ZoneService,
} from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import type { DnsServer } from "./dns-server.ts";

/** Feed of a DNS server: the full zone, then its changes. It acknowledges the served revision. */
export function zoneFeed({ apply, zone }: DnsServer, log: Log): Feed<FollowRequest, ZoneBatch> {
  const serves = (servedRevision: bigint) => create(FollowRequestSchema, { servedRevision });
  return {
    method: grpcService(ZoneService).follow,
    firstMessage: () => create(FollowRequestSchema, { servedRevision: zone.revision, listeners: reportedListeners() }),
    apply(batch, controller) {
      const served = apply(batch);
      if (batch.reset) log.info("zone received", { controller, revision: batch.revision.toString() });
      return batch.synced ? serves(served) : undefined;
    },
  };
}
