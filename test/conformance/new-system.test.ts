import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { readControllerConfig, settings } from "@holdfast/controller/config.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { type Controller, startController } from "@holdfast/controller/controller.ts";
import { eventTypes, eventTypesOf } from "@holdfast/controller/systems.ts";
import { tokenResources } from "@holdfast/controller/access/credential/token-resources.ts";
import { networkPolicies } from "@holdfast/controller/fleet/network-policy/policy-source.ts";
import { ownerKinds } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import { objectGrants } from "@holdfast/controller/fleet/object-grants.ts";
import { feeds } from "@holdfast/controller/fleet/running-fleet.ts";
import { createAssembly } from "@holdfast/controller/kernel/assembly.ts";
import { createDatabase } from "@holdfast/controller/kernel/history/database.ts";
import { certificateNames } from "@holdfast/controller/kernel/pki/local-identities.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { declareSystem, mergeDeclared } from "@holdfast/controller/kernel/system-declaration.ts";
import { channelUsers } from "@holdfast/controller/notify/channel/channel-api.ts";
import { operationTypes } from "@holdfast/controller/operation/operation-definition.ts";
import { operationSubjects } from "@holdfast/controller/operation/operation.ts";
import { createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic, createRest, type Rest } from "@holdfast/testing/api/rest.ts";
import { type ControllerFixture, newControllerFixture } from "@holdfast/testing/controller/local-controller.ts";
import { noteKind } from "@holdfast/testing/note/note.ts";
import { noteService } from "@holdfast/testing/note/note-service.ts";
import { notesPart, renderNote } from "@holdfast/testing/note/note-system.ts";
import { nounsWithNotes, systemsWithNotes } from "@holdfast/testing/note/with-notes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// The fixture system in testing/src/note has one resource, and is added as CONTRIBUTING.md describes: by its files, a
// line in the list of systems and a line in the list of nouns. The controller around it is the real one.

interface Note {
  readonly id: string;
  readonly text: string;
  readonly rendered: string;
}

interface Organization {
  readonly id: string;
  readonly quotas: Readonly<Record<string, { readonly limit: number; readonly used: number }>>;
}

let fixture: ControllerFixture;
let controller: Controller;
let rest: Rest;
let environment: Record<string, string>;

/** Values of each point as its consumer reads them, by key. */
let contributed: Record<string, readonly string[]>;
const reader = declareSystem({
  name: "reader",
  open(_, use) {
    contributed = {
      subjects: use(operationSubjects).map(({ kind }) => kind),
      owners: use(ownerKinds).map(({ kind }) => kind),
      resources: use(tokenResources).map(({ kind }) => kind),
      policies: use(networkPolicies).map(({ name }) => name),
      grants: use(objectGrants).map(({ ownerKind }) => ownerKind),
      feeds: use(feeds).map(({ dataPlane }) => dataPlane),
      names: use(certificateNames).map(({ dataPlane }) => dataPlane),
      users: use(channelUsers).map(({ kind }) => kind),
      operations: use(operationTypes).flatMap(({ type, of }) => (of === "the note" ? [type] : [])),
      notes: [...use(notesPart).ids()],
    };
    return { name: "reader" };
  },
});

beforeAll(async () => {
  fixture = await newControllerFixture("inst-notes", nounsWithNotes);
  environment = { ...(await fixture.settingsIn(fixture.directory)), HOLDFAST_NOTE_PREFIX: "In this house" };
  controller = await startController([...systemsWithNotes, reader], environment);
  const { HOLDFAST_BASE_URL: baseUrl = "", HOLDFAST_CA_FILE: caFile = "" } = environment;
  const { api_key_id: id, api_key_secret: secret } = fixture.bootstrap;
  rest = createRest({ baseUrl, ca: await readFile(caFile, "utf8"), authorization: basic(id, secret) });
});
afterAll(async () => {
  rest?.close();
  await controller?.stop();
  await fixture?.close();
});

async function renderedNote(id: string): Promise<Note> {
  let note: Note | undefined;
  await waitUntil("the note is rendered", async () => {
    note = (await rest.get<Note>(`/notes/${id}`)).json;
    return note.rendered !== "";
  });
  if (note === undefined) throw new Error("no note");
  return note;
}

test("a resource of a new system has REST, a reconciler, events, metrics, a quota and a command", async () => {
  const created = await rest.post<Note>("/notes", { text: "Ada slept" });
  expect(created.status).toBe(201);
  const { id } = created.json;

  // The reconciler applies the system's setting.
  expect(await renderedNote(id)).toEqual({ id, text: "Ada slept", rendered: "In this house: Ada slept" });

  // Its event arrives through the outbox, with the audit entry of its creation.
  const found = async (path: string, member: string) =>
    ((await rest.get<Record<string, Record<string, unknown>[]>>(path)).json[member] ?? []).find(
      (entry) => entry["event_type"] === "note.rendered" || entry["action"] === "note.create",
    );
  await waitUntil("the event is in the history", async () => (await found("/events", "events")) !== undefined);
  const refusal = async () =>
    ((await rest.get<Record<string, Record<string, unknown>[]>>("/audit-log")).json["entries"] ?? []).find(
      ({ action }) => action === "note.create quota_exceeded",
    );
  expect(await found("/events", "events")).toMatchObject({
    data: { note_id: id, rendered: "In this house: Ada slept" },
  });
  await waitUntil("the audit entry exists", async () => (await found("/audit-log", "entries")) !== undefined);

  // Its metric is among the metrics of the process.
  expect(await controller.metrics.text()).toMatch(/^holdfast_notes 1$/m);

  // Its quota rejects a third note, with the figures.
  expect((await rest.post("/notes", { text: "Grace too" })).status).toBe(201);
  const refused = await rest.post("/notes", { text: "one too many" });
  // oxlint-disable-next-line holdfast/names -- a member of the API
  expect(refused.json).toMatchObject({ code: "quota_exceeded", quota: "notes", used: 2, asked: 1, limit: 2 });
  await waitUntil("the refusal is in the audit log", async () => (await refusal()) !== undefined);
  expect(await refusal()).toMatchObject({ object_kind: "note", result: "refused" });

  // The organization shows the quota, and an operator raises and resets it by its name.
  const organization = async () => {
    const { organizations } = (await rest.get<{ organizations: Organization[] }>("/organizations")).json;
    return organizations[0] as Organization;
  };
  const before = await organization();
  expect(before.quotas["notes"]).toEqual({ limit: 2, used: 2 });
  expect(before.quotas["inference_keys"]).toEqual({ limit: 1_000, used: 0 });
  const quota = (...flags: string[]) =>
    fixture.admin<{ quotas: Organization["quotas"] }>(environment, "orgs", "quota", before.id, ...flags);
  expect((await quota("--set", "notes=3")).quotas["notes"]).toEqual({ limit: 3, used: 2 });
  await waitUntil("the controller has the limit", async () => (await organization()).quotas["notes"]?.limit === 3);
  const third = await rest.post<Note>("/notes", { text: "a third" });
  expect(third.status).toBe(201);
  expect((await quota("--reset", "notes")).quotas["notes"]).toEqual({ limit: 2, used: 3 });

  // Its noun of the command line lists the note.
  const { code, text } = await fixture.command(["notes", "list", "--output", "json"], {
    HOLDFAST_BASE_URL: environment["HOLDFAST_BASE_URL"],
    HOLDFAST_CA_FILE: environment["HOLDFAST_CA_FILE"],
    HOLDFAST_API_KEY_ID: fixture.bootstrap.api_key_id,
    HOLDFAST_API_KEY_SECRET: fixture.bootstrap.api_key_secret,
  });
  expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining("Ada slept") });
});

/** The rows of `admin reconciles`, by the controller with these settings. */
const reconciles = (settings: Record<string, string>, ...flags: string[]) =>
  fixture.admin<Record<string, unknown>[]>(settings, "reconciles", ...flags);

test("every controller lists a failing key with its error, until the key succeeds", async () => {
  const store = createEtcdStore({ hosts: [fixture.etcd.url], log: silentLog });
  const otherDirectory = await mkdtemp(join(fixture.directory, "other-"));
  const otherSettings: Record<string, string> = {
    ...(await fixture.settingsIn(otherDirectory)),
    HOLDFAST_CONTROLLER_ID: "controller-2",
  };
  for (const name of ["HOLDFAST_MASTER_KEY_FILE", "HOLDFAST_OBJECTS"] as const)
    otherSettings[name] = environment[name] ?? "";
  const secondController = await startController(systemsWithNotes, otherSettings);
  try {
    const { notes } = (await rest.get<{ notes: Note[] }>("/notes")).json;
    const id = notes[0]?.id ?? "";
    const key = keyOf(noteKind, id);
    /** Changes the stored text, and has it rendered again. */
    const setText = async (text: string) => {
      const stored = JSON.parse((await store.get(key))?.value ?? "");
      const value = JSON.stringify({ ...stored, spec: { text }, status: { rendered: null } });
      await store.commit({ conditions: [], puts: [{ key, value }], deletes: [] });
    };

    await setText("{mood} password=hunter2");
    for (const settings of [environment, otherSettings]) {
      let row: Record<string, unknown> | undefined;
      await waitUntil("the failing key is listed", async () => {
        row = (await reconciles(settings, "--failing")).find((each) => each["key"] === id);
        return Number(row?.["failures"]) > 1;
      });
      expect(row).toMatchObject({
        reconciler: "note",
        lastError: "Error: There is no variable for the note {mood} password=[redacted]",
        controllerId: expect.stringMatching(/^controller-[12]$/),
      });
      const all = (await reconciles(settings)).filter(({ reconciler }) => reconciler === "note");
      expect(all.map(({ controllerId }) => controllerId)).toEqual(["controller-1", "controller-2"]);
      expect(all.map(({ failing = 0 }) => failing).toSorted()).toEqual([0, 1]);
    }
    const texts = await Promise.all([controller, secondController].map(({ metrics }) => metrics.text()));
    expect(texts.join("\n")).toMatch(/^holdfast_reconcile_failing_keys\{reconciler="note"\} 1$/m);

    await setText("Ada woke");
    await renderedNote(id);
    for (const settings of [environment, otherSettings])
      await waitUntil("no key fails", async () =>
        (await reconciles(settings, "--failing")).every((each) => each["key"] !== id),
      );
  } finally {
    await secondController.stop();
    await store.close();
  }
});

test("a token is limited to one object of the new system, and gets scopes of its kind only", async () => {
  const { notes } = (await rest.get<{ notes: Note[] }>("/notes")).json;
  expect(notes).toHaveLength(3);
  const limitedTo = (kind: string, id: string, scope: string) =>
    rest.post<{ token: string }>("/tokens", { scopes: [scope], ttl_seconds: 60, resources: [{ kind, id }] });
  const id = notes[0]?.id ?? "";
  const { json } = await limitedTo("note", id, "notes:read");
  const { HOLDFAST_BASE_URL: baseUrl = "", HOLDFAST_CA_FILE: caFile = "" } = environment;
  const limited = createRest({ baseUrl, ca: await readFile(caFile, "utf8"), authorization: `Bearer ${json.token}` });
  expect((await limited.get<{ notes: Note[] }>("/notes")).json.notes).toEqual([notes[0]]);
  expect((await limited.get(`/notes/${notes[1]?.id}`)).status).toBe(404);
  limited.close();
  expect((await limitedTo("note", id, "services:read")).text).toContain("cannot be limited to resources");
  expect((await limitedTo("managed-service", id, "services:read")).text).toContain(
    "is not an object of the organization",
  );
  expect((await limitedTo("book", id, "notes:read")).text).toContain("must be one of managed-service, note");
});

test("the description of the API has the methods and the events of the new system", async () => {
  const { json } = await rest.get<{ paths: object; webhooks: object }>("/openapi.json");
  expect(Object.keys(json.paths)).toContain("/notes/{id}");
  expect(Object.keys(json.webhooks)).toContain("note.rendered");
});

test("the process of a data plane follows the feed of the new system", async () => {
  const { notes } = (await rest.get<{ notes: Note[] }>("/notes")).json;
  expect(notes.length).toBeGreaterThan(0);
  const { HOLDFAST_DNS_IDENTITY_DIR: identity = "", HOLDFAST_AGENT_LISTEN: address = "" } = environment;
  const [trustBundle, privateKey, certificate] = await Promise.all(
    ["ca.pem", "key.pem", "cert.pem"].map((file) => readFile(join(identity, file), "utf8")),
  );
  const trust = { trustBundle: trustBundle ?? "", installationId: "inst-notes" };
  const { listNotes } = grpcService(noteService);
  if (listNotes === undefined) throw new Error("the service has no ListNotes");
  const request = create(noteService.method["listNotes"]!.input);
  const call = async (client?: { privateKey: string; certificate: string }) => {
    const channel = createControllerChannel(address, { ...trust, ...(client && { client }) });
    try {
      return await channel.unary(listNotes, request, 10_000);
    } finally {
      channel.close();
    }
  };
  expect(await call({ privateKey: privateKey ?? "", certificate: certificate ?? "" })).toMatchObject({ notes });
  await expect(call()).rejects.toThrow("a client certificate of this installation is needed");
});

test("the system contributes to points beside services, and a key is contributed once", async () => {
  expect(contributed).toEqual({
    subjects: ["managed-service", "app", "note"],
    owners: ["managed-service", "files-service", "drill", "app", "note"],
    resources: ["managed-service", "note"],
    policies: ["managed-service", "app", "note"],
    grants: ["managed-service", "drill", "note"],
    feeds: ["issuer", "registry", "ingress", "inference", "note"],
    names: ["registry", "ingress", "inference", "note"],
    users: ["alert-rule", "note"],
    operations: ["render_note"],
    notes: [],
  });
  const copy = declareSystem({ name: "copy", declares: [operationTypes.of(renderNote)] });
  expect(() => createAssembly([...systemsWithNotes, copy])).toThrow(
    'systems "note" and "copy" both contribute "render_note" to "operation types"',
  );
  // Its migrations ran after the platform's migrations.
  const database = createDatabase({ url: fixture.postgresql.url, log: silentLog });
  const steps = await database.query<{ step: string }>("select step from schema_version order by applied_at, step");
  expect(steps.at(-1)).toEqual({ step: "note/2026-11-28-rendered.sql" });
  expect(await database.query("select * from rendered_note")).toEqual([]);
  await database.close();
});

test("settings and events are gathered from the list of systems, and a name is declared once", () => {
  expect([...eventTypesOf(systemsWithNotes).keys()].filter((type) => !eventTypes.has(type))).toEqual(["note.rendered"]);
  expect(Object.keys(settings)).not.toContain("notePrefix");
  expect(readControllerConfig(environment, systemsWithNotes)).toMatchObject({ notePrefix: "In this house" });
  expect(() =>
    mergeDeclared(
      [
        { name: "a", of: { one: 1 } },
        { name: "b", of: { one: 3 } },
      ],
      ({ of }) => of,
    ),
  ).toThrow('systems "a" and "b" both declare "one"');
});
