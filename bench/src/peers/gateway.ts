import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { randomUUID } from "node:crypto";
import { clone, create, createFileRegistry, type DescFile, getExtension, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, timestampNow } from "@bufbuild/protobuf/wkt";
import { systemClock as clock } from "@holdfast/common/clock.ts";
import { silentLog as log } from "@holdfast/common/log.ts";
import { scopeCatalogOf, systems } from "@holdfast/controller/systems.ts";
import { createAccess } from "@holdfast/controller/access/create-access.ts";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import {
  HealthStatus,
  ManagedServiceSchema,
  ManagedServiceService,
  ManagedServiceStatus,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { uuidv7 } from "uuidv7";

// The API's own gateway and access with one constant response, so that only authentication differs between the two
// kinds: one has the method of the protos, the other the same method declared public.
interface Settings {
  readonly key: string;
  readonly cert: string;
  readonly etcd: string;
  /** Base64. */
  readonly masterKey: string;
  readonly isPublic: boolean;
}

const { key, cert, etcd, masterKey, isPublic } = JSON.parse(process.argv[2] ?? "") as Settings;
const store = createEtcdStore({ hosts: [etcd], log });
const collections = createCollections(store);
await collections.ready;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.from(masterKey, "base64")]]) });
const unused = () => {
  throw new Error("nothing is changed here");
};
const access = createAccess({
  store,
  collections,
  kinds: collections.set,
  begin: unused,
  history: { audit: unused },
  sealer,
  cursors: createCursors(sealer),
  clock,
  log,
  newId: uuidv7,
  sources: createSourceGroups(),
  scopeCatalog: scopeCatalogOf(systems),
  resources: [],
});
const answer = Object.freeze(
  create(ManagedServiceSchema, {
    id: "bench",
    name: "bench",
    status: ManagedServiceStatus.RUNNING,
    health: { status: HealthStatus.HEALTHY },
    createdAt: timestampNow(),
    updatedAt: timestampNow(),
  }),
);
const service = isPublic ? declaredPublic() : ManagedServiceService;
const handlers = Object.fromEntries(service.methods.map(({ localName }) => [localName, async () => answer]));
const handler = createGateway({
  services: [{ service, handlers, checks: {} }],
  authenticator: access.authenticator,
  // Counted as usual, and never reached.
  rateLimit: { reads: 1_000_000_000, changes: 1_000_000_000, messages: 1_000_000_000 },
  storedResponses: { find: unused, reserve: unused, store: unused },
  reached: collections.untilRevision,
  ready: () => true,
  baseUrl: "https://localhost",
  log,
  clock,
  newId: randomUUID,
});
const server = createApiServer({ key, cert, log, handler });
process.send?.({ port: await server.listen(0, "127.0.0.1") });
process.once("disconnect", () => process.exit());

/** The service as its proto would define it with the scope "public" on the read. */
function declaredPublic() {
  const file = clone(FileDescriptorProtoSchema, ManagedServiceService.file.proto);
  for (const { options } of file.service.flatMap(({ method }) =>
    method.filter(({ name }) => name === "GetManagedService"),
  ))
    if (options !== undefined) setExtension(options, rules, { ...getExtension(options, rules), scope: "public" });
  const dependencies = new Map(allOf(ManagedServiceService.file).map((each) => [each.proto.name, each]));
  const publicService = createFileRegistry(file, (name) => dependencies.get(name)).getService(
    ManagedServiceService.typeName,
  );
  if (publicService === undefined) throw new Error("the service is not in its file");
  return publicService;
}

function allOf(file: DescFile): DescFile[] {
  return file.dependencies.flatMap((dependency) => [dependency, ...allOf(dependency)]);
}
