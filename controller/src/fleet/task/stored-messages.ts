import { type DescMessage, fromJsonString, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { PayloadStore } from "../payload/payloads.ts";
import { createSensitiveFields } from "./sensitive-fields.ts";
import type { StoredMessage } from "./task.ts";

/**
 * Converts messages to their stored form and back. Sensitive fields are sealed, and messages above the inline limit are
 * stored as payloads.
 */
export interface StoredMessages {
  /** `owner`: key of the object that contains the message, to which the sealed fields are bound. */
  store<D extends DescMessage>(
    schema: D,
    message: MessageShape<D>,
    owner: string,
    machineId: string,
  ): Promise<StoredMessage>;
  /** The message, if it is stored inline; undefined if it is in the object store. */
  inline<D extends DescMessage>(schema: D, stored: StoredMessage, owner: string): MessageShape<D> | undefined;
  load<D extends DescMessage>(
    schema: D,
    stored: StoredMessage,
    owner: string,
    machineId: string,
  ): Promise<MessageShape<D>>;
}

export function createStoredMessages(sealer: Sealer, payloads: PayloadStore, inlineBytes: number): StoredMessages {
  const sensitive = createSensitiveFields();
  const parse = <D extends DescMessage>(schema: D, json: string, owner: string): MessageShape<D> =>
    sensitive.map(schema, fromJsonString(schema, json, { ignoreUnknownFields: true }), (text) =>
      sealer.open(text, owner),
    );
  return {
    async store(schema, message, owner, machineId) {
      const sealed = sensitive.map(schema, message, (text) => sealer.seal(text, owner));
      const json = toJsonString(schema, sealed);
      if (Buffer.byteLength(json) <= inlineBytes) return { json };
      const { id, sizeBytes, sha256 } = await payloads.write(machineId, once(Buffer.from(json)));
      return { payloadId: id, sizeBytes, sha256 };
    },
    inline: (schema, stored, owner) => ("json" in stored ? parse(schema, stored.json, owner) : undefined),
    async load(schema, stored, owner, machineId) {
      if ("json" in stored) return parse(schema, stored.json, owner);
      const bytes = await payloads.read(machineId, stored.payloadId);
      if (bytes === undefined) throw new Error("the payload of a task is not in the object store");
      const chunks: Uint8Array[] = [];
      for await (const chunk of bytes) chunks.push(chunk);
      return parse(schema, Buffer.concat(chunks).toString("utf8"), owner);
    },
  };
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
