import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import {
  type MintObjectUrlsRequest,
  MintObjectUrlsRequestSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ObjectUseText, UrlGrant } from "./job.ts";

type Scope = Exclude<MintObjectUrlsRequest["scope"], { case: undefined }>;

const mintWithinMs = 15_000;

/** Has a controller sign URLs of objects that are the scope's; throws while none is connected, or when it refuses. */
export async function mintUrls(
  channel: ControllerChannel | undefined,
  scope: Scope | undefined,
  uses: readonly ObjectUseText[],
): Promise<UrlGrant> {
  if (channel === undefined) throw new Error("no controller is connected");
  if (scope === undefined) throw new Error("there is no job that has objects");
  const request = create(MintObjectUrlsRequestSchema, { scope, uses: [...uses] });
  const { urls, expiresAt, endpoint } = await channel.unary(agentMethods.mintObjectUrls, request, mintWithinMs);
  if (expiresAt === undefined || endpoint === undefined) throw new Error("the controller signed no URLs");
  const { addresses, port, trustBundle } = endpoint;
  return {
    urls: urls.map(({ url, headers }) => ({ url, headers })),
    expiresAtMs: timestampMs(expiresAt),
    endpoint: { addresses, port, trustBundle },
  };
}
