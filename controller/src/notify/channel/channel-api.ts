import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type ChannelDeliverySchema,
  ChannelSchema,
  ChannelService,
  ChannelType,
  TestChannelResponseSchema,
  type UpdateChannelRequest,
} from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import { mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AttemptRecord, Deliveries } from "../webhook/deliveries.ts";
import { attemptFields } from "../webhook/webhook-message.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import { newSecret } from "../webhook/webhook.ts";
import {
  channelKind,
  type ChannelObject,
  type ChannelSpec,
  type ChannelStatus,
  type CheckedConfig,
  checkedConfig,
  requireMail,
  sealChannelSecret,
} from "./channel.ts";
import { channelTestEvent, confirmationEvent } from "./channel-event.ts";
import type { LinkRateLimit } from "./link-rate-limit.ts";

/** Objects of one kind that refer to channels, such as alert rules. */
export interface ChannelUsers {
  /** Name of the kind. */
  readonly kind: string;
  /** Ids of the objects that refer to a channel. */
  usersOf(channel: Stored<ChannelObject>): Promise<readonly string[]>;
}

export const channelUsers = contributionPoint<ChannelUsers>("users of channels", { key: ({ kind }) => kind });

export interface ChannelApiDeps {
  readonly begin: () => UnitOfWork;
  readonly channels: Collection<ChannelObject>;
  readonly organizations: Pick<Collection<Organization>, "get" | "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly deliveries: Pick<Deliveries, "attempts">;
  /** Kinds that refer to channels; a channel in use cannot be deleted. */
  readonly channelUsers: readonly ChannelUsers[];
  readonly egress: Pick<EgressClient, "check">;
  readonly sendsMail: boolean;
  readonly linkRateLimit: Pick<LinkRateLimit, "claim">;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

const kind = "channel";
const attemptsMax = 100;
const usersListedMax = 20;

/** The RPCs of alert channels; the dispatcher (delivery-dispatcher.ts) sends the alerts. */
export function createChannelApi(deps: ChannelApiDeps): ServedService {
  const { channels, deliveries, cursors, clock, sealer } = deps;

  function require(id: string, call: Call): Stored<ChannelObject> {
    const channel = channels.get(id);
    const isOfOrganization = channel?.object.metadata.organizationId === organizationOf(call);
    if (channel === undefined || !isOfOrganization || !mayTouch(call, "channel", id))
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such channel in the organization.");
    return channel;
  }

  /** Requests a confirmation link for a channel whose address is not confirmed. */
  function requestConfirmation(unit: Changes, { metadata, spec, status }: ChannelObject): void {
    if (spec.type !== "email" || status.confirmedAt !== null) return;
    deps.linkRateLimit.claim(unit, metadata.organizationId, spec.address);
    unit.event(confirmationEvent(metadata.organizationId, metadata.id));
  }

  const handlers: Handlers<typeof ChannelService> = {
    createChannel: async (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      const type = request.type === ChannelType.EMAIL ? "email" : "webhook";
      const config = await checkedConfig(type, requireConfig(request.config), deps, call.signal);
      const mutation = { action: "channel.create", kind, visibleIn: [deps.organizations, channels] };
      return mutate(deps, call, mutation, async (unit) => {
        const id = deps.newId();
        const secret = newSecret();
        const channel: ChannelObject = {
          metadata: newMetadata(id, clock.now(), { name: request.name, organizationId }),
          spec: specOf(config, () => sealChannelSecret(secret, id, sealer)),
          status: { confirmedAt: null, confirmation: null },
        };
        const answer = create(ChannelSchema, channelMessage(channel, secret));
        unit.create(channelKind, channel);
        await deps.quotas.claim(unit, organizationId, { channels: 1 });
        requestConfirmation(unit, channel);
        return { id, response: answer };
      });
    },

    listChannels: async (request, call) => {
      const page = { ...cursors.open(call, "channels", null, request), organizationId: organizationOf(call) };
      const { items, next } = channels.page(({ metadata }) => mayTouch(call, "channel", metadata.id), page);
      return { channels: items.map(({ object }) => channelMessage(object)), ...page.next(next) };
    },

    getChannel: async ({ id }, call) => channelMessage(require(id, call).object),

    updateChannel: async (request, call) => {
      const { type } = require(request.id, call).object.spec;
      const config =
        request.config === undefined ? undefined : await checkedConfig(type, request.config, deps, call.signal);
      return mutate(deps, call, { action: "channel.update", kind, visibleIn: [channels] }, async (unit) => {
        const before = require(request.id, call);
        const after = updated(before.object, request, config, clock.now());
        unit.update(channelKind, before, after);
        if (after.status !== before.object.status) requestConfirmation(unit, after);
        return { id: request.id, response: create(ChannelSchema, channelMessage(after)) };
      });
    },

    deleteChannel: ({ id }, call) =>
      mutate(deps, call, { action: "channel.delete", kind, visibleIn: [channels] }, async (unit) => {
        const channel = require(id, call);
        const users = (await Promise.all(deps.channelUsers.map((each) => each.usersOf(channel)))).flat();
        if (users.length > 0) throw inUse(users);
        unit.remove(channelKind, channel);
        return { id, result: {} };
      }),

    testChannel: ({ id }, call) =>
      mutate(deps, call, { action: "channel.test", kind, visibleIn: [channels] }, async (unit) => {
        const channel = require(id, call).object;
        const { metadata, spec, status } = channel;
        const isWaiting = spec.type === "email" && status.confirmedAt === null;
        if (spec.type === "email") requireMail(deps.sendsMail);
        const message = isWaiting
          ? "A link to confirm the address will be sent."
          : "A channel.test event will be sent.";
        const answer = create(TestChannelResponseSchema, { message });
        if (isWaiting) requestConfirmation(unit, channel);
        else unit.event(channelTestEvent(metadata.organizationId, id));
        return { id, response: answer };
      }),

    listChannelDeliveries: async ({ id }, call) => {
      require(id, call);
      return { deliveries: (await deliveries.attempts(id, attemptsMax)).map(channelDeliveryMessage) };
    },
  };
  return serve(ChannelService, handlers);
}

function requireConfig<C>(config: C | undefined): C {
  if (config !== undefined) return config;
  throw invalid({ field: "config", code: "required", detail: "is required" });
}

function specOf(config: CheckedConfig, seal: () => string): ChannelSpec {
  return config.type === "webhook" ? { ...config, sealedSecret: seal() } : config;
}

/** Applies the fields of the mask. A new address has to be confirmed again. */
function updated(
  channel: ChannelObject,
  request: UpdateChannelRequest,
  config: CheckedConfig | undefined,
  now: number,
): ChannelObject {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  const unknown = paths.find((path) => path !== "name" && path !== "config" && !path.startsWith("config."));
  if (unknown !== undefined)
    throw invalid({ field: "update_mask", code: "unknown_field", detail: `names ${unknown}, which cannot be changed` });
  if (paths.includes("name") && request.name === undefined)
    throw invalid({ field: "name", code: "not_clearable", detail: "must not be null" });
  if (paths.some((path) => path.startsWith("config")) && config === undefined)
    throw invalid({ field: "config", code: "not_clearable", detail: "must not be null" });
  const { metadata, spec, status } = channel;
  const changed =
    config !== undefined && config.type === "email" && spec.type === "email" && config.address !== spec.address;
  return {
    metadata: { ...nextMetadata(metadata, now), name: request.name ?? metadata.name },
    spec: config === undefined ? spec : ({ ...spec, ...config } as ChannelSpec),
    status: changed ? { confirmedAt: null, confirmation: null } : status,
  };
}

function inUse(users: readonly string[]): HoldfastError {
  const listed = users.slice(0, usersListedMax);
  const more = users.length > listed.length ? ` and ${users.length - listed.length} more` : "";
  return new HoldfastError("WRONG_STATE", `The channel is in use by ${listed.join(", ")}${more}.`, {
    members: { rules: listed, rules_total: users.length },
  });
}

const plainWarning = "Alerts over http:// can be read in transit; use https:// where you can.";
const unconfirmedWarning = "The address gets no alerts until its holder confirms it by the link that was sent to it.";

/** The API message of a channel. Only the response to its creation has the secret. */
function channelMessage(
  { metadata, spec, status }: ChannelObject,
  secret: string = secretMask,
): Omit<MessageInitShape<typeof ChannelSchema>, "$typeName"> {
  const warning = warningOf(spec, status);
  return {
    id: metadata.id,
    name: metadata.name,
    type: spec.type === "webhook" ? ChannelType.WEBHOOK : ChannelType.EMAIL,
    config: spec.type === "webhook" ? { url: spec.url, secret } : { address: spec.address },
    ...(status.confirmedAt !== null && { confirmedAt: timestampFromMs(status.confirmedAt) }),
    ...(warning !== undefined && { warning }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  };
}

function warningOf(spec: ChannelSpec, { confirmedAt }: ChannelStatus): string | undefined {
  if (spec.type === "webhook") return spec.url.startsWith("http:") ? plainWarning : undefined;
  return confirmedAt === null ? unconfirmedWarning : undefined;
}

function channelDeliveryMessage(record: AttemptRecord): MessageInitShape<typeof ChannelDeliverySchema> {
  return { channelId: record.webhookId, ...attemptFields(record) };
}
