import type { Call, Handlers, Principal } from "@holdfast/common/call.ts";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient } from "@holdfast/egress/egress-client.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import { createHistory, type History } from "@holdfast/controller/kernel/history/history.ts";
import { createAuditedActs } from "@holdfast/controller/kernel/outbox/audited-acts.ts";
import { createInsertEntries } from "@holdfast/controller/kernel/outbox/entry-planner.ts";
import { createOutbox } from "@holdfast/controller/kernel/outbox/outbox.ts";
import { soleOwner } from "../controller/sole-owner.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import type { NewEvent } from "@holdfast/controller/kernel/store/outbox-entry.ts";
import { createUnitOfWork } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import { createDeliveries } from "@holdfast/controller/notify/webhook/deliveries.ts";
import { createDeliveryDispatcher } from "@holdfast/controller/notify/webhook/delivery-dispatcher.ts";
import { allReceivers } from "@holdfast/controller/notify/webhook/receiver.ts";
import { createWebhookReceivers } from "@holdfast/controller/notify/webhook/webhook-receivers.ts";
import { createChannelReceivers } from "@holdfast/controller/notify/channel/channel-receivers.ts";
import { channelKind, sealChannelSecret } from "@holdfast/controller/notify/channel/channel.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import type { AttemptLimits } from "@holdfast/controller/notify/webhook/endpoint-limits.ts";
import { webhookKind, type WebhookObject } from "@holdfast/controller/notify/webhook/webhook.ts";
import { eventTypes } from "@holdfast/controller/systems.ts";
import { optInOf } from "@holdfast/controller/kernel/outbox/event-definition.ts";
import { createWebhookApi } from "@holdfast/controller/notify/webhook/webhook-api.ts";
import type { WebhookService } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { uuidv7 } from "uuidv7";
import { startTestEtcd } from "../controller/etcd.ts";
import { startTestPostgresql } from "../engines/postgresql.ts";

/** The part of a controller that webhooks and channels of alerts need, on a real etcd and a real history. */
export interface WebhookPlatform {
  readonly store: Store;
  readonly history: History;
  readonly webhooks: Collection<WebhookObject>;
  readonly api: Handlers<typeof WebhookService>;
  /** A call by a user of the organization. */
  call(organizationId: string): Call;
  /** Commits an event, as a change of a service would. */
  emit(organizationId: string, type: string, data?: NewEvent["data"]): Promise<void>;
  /** Commits these events in one transaction, as simultaneous changes would. */
  emitAll(organizationId: string, type: string, data: readonly NewEvent["data"][]): Promise<void>;
  /** Creates a channel of type webhook; resolves to its id once events may name it. */
  channel(organizationId: string, url: string): Promise<string>;
  /** Starts the mover of events to the history and their delivery. */
  deliver(options?: DeliverOptions): Delivering;
  close(): Promise<void>;
}

export interface DeliverOptions {
  readonly clock?: Clock;
  readonly limits?: AttemptLimits;
  /** Deadline of an attempt; the platform's own by default. */
  readonly attemptMs?: number;
  /** Runs when events and their deliveries are durable, before their insert resolves. An error fails the insert. */
  readonly afterInsert?: () => Promise<void>;
  /** Runs when requested redeliveries are due, before their call resolves. An error fails the call. */
  readonly afterRepeats?: () => void;
}

export interface WebhookServers {
  readonly etcdUrl: string;
  readonly historyUrl: string;
}

export interface Delivering {
  stop(): Promise<void>;
}

/** Starts a webhook platform on new servers. */
export async function startWebhookPlatform(): Promise<WebhookPlatform> {
  const [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  const platform = await openWebhookPlatform({ etcdUrl: etcd.url, historyUrl: postgresql.url });
  return {
    ...platform,
    async close() {
      await platform.close();
      await Promise.all([etcd.stop(), postgresql.stop()]);
    },
  };
}

/** Opens a webhook platform on existing servers, which several platforms may share. */
export async function openWebhookPlatform({ etcdUrl, historyUrl }: WebhookServers): Promise<WebhookPlatform> {
  const store = createEtcdStore({ hosts: [etcdUrl], log: silentLog });
  const history = createHistory({ url: historyUrl, log: silentLog, now: Date.now });
  const webhooks = createCollection(store, webhookKind);
  const channels = createCollection(store, channelKind);
  await Promise.all([history.ready, webhooks.ready, channels.ready]);
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
  const policy = createAddressPolicy(["127.0.0.0/8"], {
    host: () => [],
    listeners: () => [{ host: "127.0.0.1", port: Number(new URL(historyUrl).port) }],
    machineNetworks: () => [],
  });
  const egress = createEgressClient({ policy, resolve: createResolveName() });
  const common = { store, history, ownership: soleOwner, random: () => 0, log: silentLog, sealer, newId: uuidv7 };
  const begin = (clock: Clock = systemClock) =>
    createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });
  const deliveries = createDeliveries(history.sql);
  const auditedActs = createAuditedActs({
    ...common,
    history: { insert: async () => undefined },
    outbox: { admit() {} },
    clock: systemClock,
    ids: uuidv7,
  });
  const served = createWebhookApi({
    ...common,
    auditedActs,
    begin,
    webhooks,
    // An organization here is only an id: each has quota, and there is nothing to wait for.
    organizations: { untilRevision: async () => undefined },
    quotas: { claim: async () => undefined },
    deliveries,
    egress,
    eventTypes,
    cursors: createCursors(sealer),
    clock: systemClock,
  });

  async function emitAll(organizationId: string, type: string, data: readonly NewEvent["data"][]): Promise<void> {
    const unit = begin();
    for (const each of data)
      unit.event({ type, organizationId, objectKind: "managed-service", objectId: uuidv7(), data: each });
    await unit.commit();
  }

  return {
    store,
    history,
    webhooks,
    api: served.handlers as Handlers<typeof WebhookService>,
    call: callOf,
    emit: (organizationId, type, data = { status: "Running" }) => emitAll(organizationId, type, [data]),
    emitAll,
    async channel(organizationId, url) {
      const metadata = newMetadata(uuidv7(), Date.now(), { name: "on call", organizationId });
      const sealedSecret = sealChannelSecret(uuidv7(), metadata.id, sealer);
      const status = { confirmedAt: null, confirmation: null };
      const unit = begin();
      unit.create(channelKind, { metadata, spec: { type: "webhook", url, sealedSecret }, status });
      await channels.untilRevision(await unit.commit(), 60_000);
      return metadata.id;
    },
    deliver({ clock = systemClock, limits, attemptMs, afterInsert, afterRepeats } = {}) {
      const post: typeof egress.post = (url, request) =>
        egress.post(url, { ...request, deadlineMs: attemptMs ?? request.deadlineMs });
      const all = { ...common, webhooks, channels, deliveries, clock, egress: { post } };
      const toWebhooks = createWebhookReceivers({ ...all, isOptIn: optInOf(eventTypes), begin: () => begin(clock) });
      const toChannels = createChannelReceivers({ ...all, mail: { send: async () => "No mail is sent here." } });
      const dispatcher = createDeliveryDispatcher({
        ...common,
        deliveries: {
          ...deliveries,
          async takeRepeats(dueAt) {
            const webhookIds = await deliveries.takeRepeats(dueAt);
            if (webhookIds.length > 0) afterRepeats?.();
            return webhookIds;
          },
        },
        receivers: allReceivers([toWebhooks, toChannels]),
        clock,
        ...(limits && { limits }),
      });
      const insert: typeof history.insert = async (entries, planned) => {
        const rowIds = await history.insert(entries, planned);
        await afterInsert?.();
        return rowIds;
      };
      const outbox = createOutbox({
        ...common,
        history: { insert: createInsertEntries({ insert }, [dispatcher]) },
        clock,
        ids: uuidv7,
      });
      return {
        async stop() {
          await outbox.stop();
          await dispatcher.stop();
        },
      };
    },
    async close() {
      await egress.close();
      webhooks.close();
      channels.close();
      await history.close();
      await store.close();
    },
  };
}

function callOf(organizationId: string): Call {
  const principal: Principal = {
    kind: "api_key",
    id: "hfk_1",
    name: "hfk_1",
    organizationId,
    scopes: new Set(["webhooks:*", "services:*"]),
  };
  return {
    requestId: uuidv7(),
    principal,
    source: "127.0.0.1",
    signal: new AbortController().signal,
    idempotency: undefined,
    ifMatch: undefined,
    minRevision: undefined,
    setHeader() {},
  };
}
