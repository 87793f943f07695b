import { expect, test } from "vitest";
import { containerConfig } from "./container-config.ts";

const image = { args: ["/bin/serve"], env: ["PATH=/bin", "MODE=a=b"], cwd: "", user: { uid: 7, gid: 8 } };

function processOf(change: { command?: readonly string[]; env?: readonly (readonly [string, string])[] } = {}) {
  const { process } = containerConfig({
    image,
    command: [],
    env: [],
    rootfs: "/r",
    networkNamespace: "/n",
    controlGroups: "/c",
    files: { "/etc/resolv.conf": "/d" },
    ...change,
  }) as { process: { args: string[]; env: string[]; cwd: string } };
  return process;
}

test("a container runs the image's command as its user, with its variables", () => {
  expect(processOf()).toMatchObject({ args: image.args, env: image.env, cwd: "/", user: image.user });
});

test("a command and variables of the app replace those of the image", () => {
  const env = [
    ["MODE", "c=d"],
    ["NEW", ""],
  ] as const;
  expect(processOf({ command: ["sh", "-c", "serve"], env })).toMatchObject({
    args: ["sh", "-c", "serve"],
    env: ["PATH=/bin", "MODE=c=d", "NEW="],
  });
});
