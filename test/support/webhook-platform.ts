import { type Call, type Handlers, type Principal } from "@holdfast/common/call.ts";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createCursors } from "@holdfast/controller/page/cursor.ts";
import { createAddressJudge } from "@holdfast/controller/egress/address-judge.ts";
import { createEgressClient } from "@holdfast/controller/egress/egress-client.ts";
import { createResolveName } from "@holdfast/controller/egress/resolve-name.ts";
import { createHistory, type History } from "@holdfast/controller/history/history.ts";
import { createOutbox } from "@holdfast/controller/outbox/outbox.ts";
import { soleOwner } from "@holdfast/controller/runtime/sole-owner.ts";
import { createSealer } from "@holdfast/controller/secrets/sealer.ts";
import { type Collection, createCollection } from "@holdfast/controller/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/store/etcd-store.ts";
import type { Store } from "@holdfast/controller/store/store.ts";
import type { NewEvent } from "@holdfast/controller/store/outbox-entry.ts";
import { createUnitOfWork } from "@holdfast/controller/store/unit-of-work.ts";
import { createDeliveryDispatcher } from "@holdfast/controller/webhook/delivery-dispatcher.ts";
import type { SlotLimits } from "@holdfast/controller/webhook/endpoint-share.ts";
import type { WebhookObject } from "@holdfast/controller/webhook/webhook.ts";
import { createWebhookApi } from "@holdfast/controller/webhook/webhook-api.ts";
import type { WebhookService } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { uuidv7 } from "uuidv7";
import { startTestEtcd } from "./etcd.ts";
import { startTestPostgresql } from "./postgresql.ts";

/** The part of a controller that webhooks need, on a real etcd and a real history. */
export interface WebhookPlatform {
  readonly store: Store;
  readonly history: History;
  readonly webhooks: Collection<WebhookObject>;
  readonly api: Handlers<typeof WebhookService>;
  /** A call by somebody of the organization. */
  call(organizationId: string): Call;
  /** Commits an event, as a change of a service would. */
  emit(organizationId: string, type: string, data?: NewEvent["data"]): Promise<void>;
  /** Starts what moves events to the history and delivers them, with another deadline of an attempt if one is given. */
  deliver(options?: { clock?: Clock; limits?: SlotLimits; attemptMs?: number }): Delivering;
  close(): Promise<void>;
}

export interface WebhookServers {
  readonly etcdUrl: string;
  readonly historyUrl: string;
}

export interface Delivering {
  stop(): Promise<void>;
}

/** On servers of its own. */
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

/** On servers that are there, which several may share. */
export async function openWebhookPlatform({ etcdUrl, historyUrl }: WebhookServers): Promise<WebhookPlatform> {
  const store = createEtcdStore({ hosts: [etcdUrl], log: silentLog });
  const history = createHistory({ url: historyUrl, log: silentLog, now: Date.now });
  const webhooks = createCollection<WebhookObject>(store, "webhook");
  await Promise.all([history.ready, webhooks.ready]);
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
  const judge = createAddressJudge(["127.0.0.0/8"], {
    host: () => [],
    listeners: () => [{ host: "127.0.0.1", port: Number(new URL(historyUrl).port) }],
    machineNetworks: () => [],
  });
  const egress = createEgressClient({ judge, resolve: createResolveName() });
  const common = { store, history, ownership: soleOwner, random: () => 0, log: silentLog, sealer, newId: uuidv7 };
  const begin = (clock: Clock = systemClock) =>
    createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });
  const { deliveries } = history;
  const served = createWebhookApi({
    ...common,
    begin,
    webhooks,
    // Organizations here are ids alone: there is room in each, and nothing of them to wait for.
    organizations: { reached: async () => undefined },
    quotas: { claim: async () => undefined },
    deliveries,
    egress,
    cursors: createCursors(sealer),
    clock: systemClock,
  });

  return {
    store,
    history,
    webhooks,
    api: served.handlers as Handlers<typeof WebhookService>,
    call: callOf,
    async emit(organizationId, type, data = { status: "Running" }) {
      const unit = begin();
      unit.event({ type, organizationId, objectKind: "managed-service", objectId: uuidv7(), data });
      await unit.commit();
    },
    deliver({ clock = systemClock, limits, attemptMs } = {}) {
      const dispatcher = createDeliveryDispatcher({
        ...common,
        begin: () => begin(clock),
        webhooks,
        egress: {
          post: (url, request) => egress.post(url, { ...request, deadlineMs: attemptMs ?? request.deadlineMs }),
        },
        clock,
        ...(limits && { limits }),
      });
      const outbox = createOutbox({ ...common, history: dispatcher, clock, ids: uuidv7 });
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
