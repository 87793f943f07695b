import { expect, test } from "vitest";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { refuseIfManaged } from "./managed-by-parent.ts";

const own: Resource<unknown, unknown> = { metadata: newMetadata("child", 0), spec: {}, status: {} };
const child = { ...own, metadata: { ...own.metadata, managedBy: { kind: "stack", id: "stack-1" } } };

test.each(["delete", "stop", "resize", "rename"])("a managed object refuses %s by others than its parent", (action) => {
  expect(() => refuseIfManaged(child, action)).toThrow("It belongs to stack stack-1");
  expect(() => refuseIfManaged(own, action)).not.toThrow();
});

test.each(["start", "restart", "expand"])("a managed object admits %s by its users", (action) => {
  expect(() => refuseIfManaged(child, action)).not.toThrow();
});

test.each([
  ["project", "delete", "delete the project, or deploy a descriptor without it and release it from the project first."],
  ["project", "rename", "which has no rename: deploy a descriptor without it and release it from the project first."],
  ["stack", "delete", "which deletes it: delete the stack."],
  ["pipeline", "resize", "which has no resize of its members."],
])("a refusal by a %s of %s names only what it offers", (kind, action, remedy) => {
  const managed = { ...own, metadata: { ...own.metadata, managedBy: { kind, id: "p" } } };
  expect(() => refuseIfManaged(managed, action)).toThrow(remedy);
});
