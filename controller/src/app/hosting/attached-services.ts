import { isIPv4 } from "node:net";
import type { Fleet } from "#fleet/fleet.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { type DnsRecordObject, privateNameOf } from "#fleet/zone/dns-record.ts";
import type { ZoneRecords } from "#fleet/zone/zone-records.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Attached, Outputs } from "#resource-kind/outputs.ts";
import { loginOf } from "#services/contents/user/attached-login.ts";
import { databaseUserKind, type DatabaseUserObject, usersOfService } from "#services/contents/user/database-user.ts";
import { isFilesKey } from "#services/files/files-key.ts";
import { keyOfConsumer } from "#services/files/files-key-changes.ts";
import { privateFilesOutputs } from "#services/files/files-connection.ts";
import { attachmentVariables, prefixOf } from "#services/resource-kind/environment-of.ts";
import { managedServiceKind, type ManagedServiceObject, serviceSubject } from "#services/service/managed-service.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";
import { admits, withClients } from "#services/service/network/client-networks.ts";
import { clientPorts } from "#services/service/pooler.ts";
import type { AppObject, AttachmentSpec } from "../app/app.ts";
import { appHost } from "../ingress/app-host.ts";
import { addressesMax, type EndpointTarget } from "./delivery-plan.ts";
import type { HostedApp } from "./hosted-app.ts";
import { frontPort } from "./hosting.ts";

/** The services that are attached to hosted apps, as their programs and machines use them. */
export interface AttachedServices {
  /** Variables of the app's program, with secrets. */
  variablesOf(app: AppObject): Readonly<Record<string, string>>;
  /** Names and ports of the attached services, which containers reach. */
  endpointsOf(app: AppObject): readonly EndpointTarget[];
  /** The reason why a program on a machine with this address does not reach the services yet; empty without one. */
  obstacleOf(app: HostedApp, address: string): string;
  /**
   * Adds the changes by which the attached services admit these machines, and others no machine of the app; true if
   * there are any.
   */
  admit(unit: Changes, app: HostedApp, addresses: readonly string[]): boolean;
  /** Calls back with the id of an app whose attached services, or their addresses, may have changed. */
  subscribe(onChange: (appId: string) => void): { close(): void };
  /** Ids of the attached services, each once. */
  idsOf(app: AppObject): readonly string[];
  /** Prefixes of the variables of all attachments. */
  prefixesOf(app: AppObject): readonly string[];
  /** Host and port at which containers of other apps reach the app, once it is attached to them. */
  privateAddressOf(app: AppObject): { readonly host: string; readonly port: number };
}

export interface AttachedServicesDeps {
  readonly apps: Pick<Collection<AppObject>, "get">;
  readonly machines: Pick<Collection<MachineObject>, "get">;
  /** The platform's domain. */
  readonly domain: string;
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "subscribe">;
  readonly records: Pick<Collection<DnsRecordObject>, "get" | "subscribe">;
  readonly users: Pick<Collection<DatabaseUserObject>, "get" | "by">;
  readonly zone: Pick<ZoneRecords, "of">;
  readonly fleet: Pick<Fleet, "observation">;
  readonly sealer: Sealer;
}

/** Port of an attached app in containers. A program and a relay cannot listen on the same port. */
const appPort = 7_000;

const idsOf = ({ spec }: AppObject) =>
  [...new Set(spec.attachments.flatMap(({ app, serviceId }) => (app ? [] : [serviceId])))].toSorted();

export function createAttachedServices(deps: AttachedServicesDeps): AttachedServices {
  const { apps, machines, domain, services, users, zone, fleet, sealer } = deps;

  /** The services with attachments, each once. */
  function servicesOf(app: AppObject): readonly Stored<ManagedServiceObject>[] {
    return idsOf(app).flatMap((id) => services.get(id) ?? []);
  }

  const prefixOfAttachment = ({ prefix, serviceId }: AttachmentSpec) =>
    prefix ?? prefixOf((services.get(serviceId) ?? apps.get(serviceId))?.object.metadata.name ?? "");

  /** Attached apps, with the name by which containers reach their machines. */
  function appsOf({ spec }: AppObject): readonly { readonly target: AppObject; readonly attachment: AttachmentSpec }[] {
    return spec.attachments.flatMap((attachment) => {
      const target = attachment.app === true ? apps.get(attachment.serviceId)?.object : undefined;
      return target === undefined ? [] : [{ target, attachment }];
    });
  }

  const privateHostOf = (target: AppObject) => privateNameOf(appHost(target, domain));

  function addressesOf({ status }: AppObject): readonly string[] {
    const found = (status.hosting?.readyIds ?? []).map((id) => machines.get(id)?.object.status.address ?? "");
    return found.filter((address) => address !== "").slice(0, addressesMax);
  }

  function outputsOf(attachment: AttachmentSpec, service: ManagedServiceObject): Outputs | undefined {
    const { spec } = service;
    if (attachment.files !== undefined) {
      const keys = usersOfService(users, service.metadata.id).filter(isFilesKey);
      const key = keyOfConsumer(keys, attachment.id);
      if (key === undefined) return undefined;
      const secret = sealer.open(key.spec.sealedPassword, keyOf(databaseUserKind, key.metadata.id));
      return privateFilesOutputs(spec, { key, secret });
    }
    const login = attachment.login && loginOf(attachment.serviceId, attachment.login.username, deps);
    if (login === undefined) return undefined;
    const { databaseType: engine, hostname, port } = spec;
    const database = attachment.databaseName;
    return { type: "database", engine, host: privateNameOf(hostname), port, ...login, database };
  }

  function obstacleOfService(
    { metadata, spec, status }: ManagedServiceObject,
    app: HostedApp,
    address: string,
  ): string {
    // A program may start while its service is stopped: it serves again before or after it.
    if (status.state !== "Running" || metadata.deletionRequestedAt !== undefined) return "";
    const { name } = metadata;
    const logins = app.spec.attachments.filter(({ serviceId, login }) => serviceId === metadata.id && login);
    const isCreated = logins.every(({ login }) => loginOf(metadata.id, login?.username ?? "", deps) !== undefined);
    if (!isCreated) return `The service ${name} creates a user for the app.`;
    const from = spec.attachedClients?.find(({ appId }) => appId === app.metadata.id)?.from ?? [];
    const generation = fleet.observation(taskTarget({ metadata, spec, status }).id)?.instance.generation ?? 0n;
    const isApplied = from.includes(`${address}/32`) && generation >= BigInt(spec.instanceGeneration);
    return isApplied ? "" : `The service ${name} admits the machines of the app.`;
  }

  return {
    variablesOf: (app) =>
      attachmentVariables([
        ...appsOf(app).map(({ target, attachment }): Attached => {
          const outputs = { type: "app", host: privateHostOf(target), port: appPort } as const;
          return { prefix: prefixOfAttachment(attachment), outputs };
        }),
        ...app.spec.attachments.flatMap((attachment): Attached[] => {
          const service = services.get(attachment.serviceId)?.object;
          const outputs = service && outputsOf(attachment, service);
          return outputs === undefined ? [] : [{ prefix: prefixOfAttachment(attachment), outputs }];
        }),
      ]),
    endpointsOf: (app) => [
      ...appsOf(app).map(({ target }) => ({
        host: privateHostOf(target),
        port: appPort,
        targetPort: frontPort,
        addresses: addressesOf(target),
      })),
      ...servicesOf(app).flatMap(({ object: service }) =>
        zone.of(serviceSubject(service.metadata.id)).flatMap(({ metadata: { id: host }, spec }) =>
          Object.values(clientPorts(service.spec)).map((port) => ({
            host,
            port,
            addresses: spec.addresses.filter(isIPv4).slice(0, addressesMax),
          })),
        ),
      ),
    ],
    obstacleOf: (app, address) =>
      servicesOf(app)
        .map(({ object }) => obstacleOfService(object, app, address))
        .find((obstacle) => obstacle !== "") ?? "",
    admit(unit, app, addresses) {
      const from = addresses.map((address) => `${address}/32`).toSorted();
      const ids = idsOf(app);
      const former = (app.status.hosting.admittedBy ?? []).filter((id) => !ids.includes(id));
      let isChanged = false;
      for (const id of [...ids, ...former]) {
        const service = services.get(id);
        const desired = former.includes(id) ? [] : from;
        if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) continue;
        if (admits(service.object, app.metadata.id, desired)) continue;
        unit.update(managedServiceKind, service, withClients(service.object, app.metadata.id, desired));
        isChanged = true;
      }
      return isChanged;
    },
    subscribe(onChange) {
      const ofService = (id: string) => {
        for (const { appId } of services.get(id)?.object.spec.attachedClients ?? []) onChange(appId);
      };
      const watches = [
        services.subscribe(ofService),
        deps.records.subscribe((name) => ofService(deps.records.get(name)?.object.spec.owner.id ?? "")),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    idsOf,
    privateAddressOf: (app) => ({ host: privateHostOf(app), port: appPort }),
    prefixesOf: ({ spec }) => spec.attachments.map(prefixOfAttachment),
  };
}
