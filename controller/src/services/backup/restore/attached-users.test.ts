import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { newFilesKey } from "../../files/files-key.ts";
import type { ServiceConsumer } from "../../service/service-consumers.ts";
import { attachedUsers } from "./attached-users.ts";

const service = runningService();
const { id: serviceId, organizationId } = service.metadata;

const key = (name: string, consumerId?: string) =>
  newFilesKey(
    { serviceId, organizationId, keyId: name, name, access: "readwrite", consumerId },
    { seal: (secret) => `sealed ${secret}` },
    1,
  ).key;

const attachment = (attachmentId: string): ServiceConsumer => ({
  attachmentId,
  database: "",
  text: "app shop",
  key: "/app/shop",
  modRevision: 7n,
});

function undelete(consumers: readonly ServiceConsumer[]) {
  const [conditions, waits]: [unknown[], bigint[]] = [[], []];
  const memory = { untilRevision: async (revision: bigint) => void waits.push(revision) };
  const kinds = [{ kind: "app", memory, of: () => consumers }];
  const users = [key("own"), key("attached", "a1"), key("detached", "a2")];
  const record = { service, users };
  return attachedUsers({ onlyWhile: (condition) => conditions.push(condition) }, record, 9n, kinds).then(
    (remaining) => ({
      names: remaining.map(({ spec }) => spec.key?.name),
      conditions,
      waits,
    }),
  );
}

test("an undelete creates no key of an attachment that ended after the deletion", async () => {
  const { names } = await undelete([attachment("a1")]);
  expect(names).toEqual(["own", "attached"]);
});

test("an attachment that ends during the undelete makes it fail, and memory is as new as the deletion", async () => {
  const { conditions, waits } = await undelete([attachment("a1")]);
  expect(conditions).toEqual([{ key: "/app/shop", modRevision: 7n }]);
  expect(waits).toEqual([9n]);
});

test("a service whose keys belong to nobody depends on no attachment", async () => {
  const unit = { onlyWhile: () => expect.unreachable() };
  const users = [key("own")];
  expect(await attachedUsers(unit, { service, users }, 9n, [])).toBe(users);
});
