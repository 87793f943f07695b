import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { ControllerFrameSchema, type RegistryFrame } from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { expect, test } from "vitest";
import { createControllerFeed, Unavailable } from "./controller-feed.ts";

function openFeed() {
  const sent: RegistryFrame[] = [];
  const feed = createControllerFeed([], silentLog);
  feed.onOpen?.((frame) => void sent.push(frame));
  const respond = (frame: Parameters<typeof create<typeof ControllerFrameSchema>>[1]) =>
    feed.apply(create(ControllerFrameSchema, frame), "controller");
  return { feed, sent, respond };
}

test("responses in any order belong to their questions", async () => {
  const { feed, sent, respond } = openFeed();
  const access = feed.accessOf("Basic x", "192.0.2.1");
  const needed = feed.neededOf(["sha256:a", "sha256:b"]);
  expect(sent.map(({ frame }) => frame)).toMatchObject([
    { case: "accessRequest", value: { id: 1n, authorization: "Basic x", source: "192.0.2.1" } },
    { case: "neededRequest", value: { id: 2n, digests: ["sha256:a", "sha256:b"] } },
  ]);
  respond({ neededResponse: { id: 2n, digests: ["sha256:b"] } });
  respond({ accessResponse: { id: 1n, subject: "api_key:k" } });
  expect(await needed).toEqual(["sha256:b"]);
  expect(await access).toMatchObject({ subject: "api_key:k" });
});

test("a response to another kind of question, and the end of the stream, are no decision", async () => {
  const { feed, respond } = openFeed();
  const mistaken = feed.neededOf(["sha256:a"]);
  respond({ accessResponse: { id: 1n } });
  await expect(mistaken).rejects.toThrow(Unavailable);
  const cut = feed.neededOf(["sha256:a"]);
  feed.onEnd?.();
  await expect(cut).rejects.toThrow(Unavailable);
  await expect(feed.neededOf(["sha256:a"])).rejects.toThrow(Unavailable);
});
