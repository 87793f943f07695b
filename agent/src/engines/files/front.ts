import { join } from "node:path";
import { filesClients, filesKeyPrefixes } from "@holdfast/common/engine-catalog/files.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { certificateFile, frontProgram, hostPrefix, keyFile, listenerSocket, serverSocket } from "./layout.ts";

/** Methods of requests that need space, while writes are blocked; otherwise empty. */
const blockedList = "blocked.lst";

/** Headers by which clients request the encryption of an object, or read an encrypted one. */
const encryptionHeaders = [
  "x-amz-server-side-encryption",
  "x-amz-server-side-encryption-customer-algorithm",
  "x-amz-copy-source-server-side-encryption-customer-algorithm",
];

/**
 * The front of a files service. It terminates TLS, checks addresses and chooses the server by the prefix of the access
 * key id. The choice is no protection: a server refuses a key that it does not have. While the disk is nearly full,
 * the front refuses requests that need space as S3 does.
 */
export function frontOf(instance: Instance): Front<"writers" | "readers"> {
  const { spec, paths } = instance;
  const clients = filesClients(planOf(spec));
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: listenerSocket(instance),
    certificateFile: certificateFile(instance),
    keyFile: keyFile(instance),
    vcpu: spec.vcpu,
    connectionLimit: clients,
    idleComment: "The frontend has a shorter limit for clients.",
    listeners: [
      {
        name: "listener",
        mode: "terminate",
        addresses: listenersOf(instance),
        connectionLimit: clients,
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        http: {
          rules: rulesOf(instance),
          list: { file: blockedList, words: instance.writesBlocked === true ? ["PUT", "POST"] : [] },
        },
        backend: "writers",
      },
    ],
    backends: {
      writers: { socket: serverSocket(instance, "writers") },
      readers: { socket: serverSocket(instance, "readers") },
    },
  };
}

function rulesOf({ spec, paths }: Instance): string[] {
  const bucket = `/${spec.bucket}`;
  // Requests with the bucket in the host name have only the key in the path. In these hosts the server finds it.
  const byHost = `{ req.hdr(host) -m beg ${hostPrefix(spec)} }`;
  const blocked = `{ method -m str -f ${join(paths.config, blockedList)} }`;
  // The completion of an upload needs no space: the object shares the blocks of its parts.
  const needsNoSpace = "{ query -m reg (^|&)(delete|uploadId)(=|&|$) }";
  const ofReaders = [
    `{ req.hdr(authorization) -m sub Credential=${filesKeyPrefixes.readonly} }`,
    `{ url_param(X-Amz-Credential) -m beg ${filesKeyPrefixes.readonly} }`,
  ];
  const ofWriters = [
    `{ req.hdr(authorization) -m sub Credential=${filesKeyPrefixes.readwrite} }`,
    `{ url_param(X-Amz-Credential) -m beg ${filesKeyPrefixes.readwrite} }`,
  ];
  // Signed URLs and some clients have parameters beside those that name another operation, such as `cors`.
  const noOtherOperation = "!{ query -m reg -i (^|&)(?!x-amz-|x-id=)[^&] }";
  const onBucket = (method: string) =>
    [`{ path ${bucket} ${bucket}/ }`, `{ path / } ${byHost}`].map(
      (isBucket) => `{ method ${method} } ${isBucket} ${noOtherOperation}`,
    );
  const oneBucket = "This service has one bucket, which can neither be deleted nor have others beside it.";
  return [
    // The server for readers refuses writes by itself; this holds even for requests that it does not know as writes.
    ...refusal(
      [403, "AccessDenied", "The key has the access readonly."],
      ofReaders.map((isReader) => `!{ method GET HEAD OPTIONS } ${isReader}`),
    ),
    // Clients create the bucket before the first upload. The server has no owner of it, and would respond with 500.
    ...refusal(
      [409, "BucketAlreadyOwnedByYou", "This service has this bucket already."],
      onBucket("PUT").flatMap((isCreation) => ofWriters.map((isWriter) => `${isCreation} ${isWriter}`)),
    ),
    // The server would store these settings, but it serves websites at another listener, which it is not given.
    ...refusal(
      [501, "NotImplemented", "This service does not serve websites."],
      ["{ method PUT } { query -m reg (^|&)website(=|&|$) }"],
    ),
    // The server ignores these headers: a client would take its object for encrypted.
    ...refusal(
      [501, "NotImplemented", "This service does not encrypt objects. Encrypt them in the client."],
      [
        ...encryptionHeaders.map((name) => `{ req.hdr_cnt(${name}) gt 0 }`),
        "{ query -m reg -i (^|&)x-amz-server-side-encryption }",
      ],
    ),
    ...refusal(
      [507, "InsufficientStorage", "The disk is nearly full. Delete objects, or expand the storage."],
      [`${blocked} !{ method POST }`, `${blocked} !${needsNoSpace}`],
    ),
    ...refusal(
      [403, "AccessDenied", oneBucket],
      [
        `{ method PUT } { path_reg ^/[^/]+/?$ } !{ path ${bucket} ${bucket}/ } !${byHost} ${noOtherOperation}`,
        ...onBucket("DELETE"),
      ],
    ),
    ...ofReaders.map((isReader) => `use_backend readers if ${isReader}`),
  ];
}

/**
 * A rule for each condition, with status, code and message of the error in S3's XML. The connection ends with it: a
 * client that waits for `100 Continue` sends no body, so that its next request would be taken for the body. Pages of
 * any origin may read it, as the bucket's settings of CORS permit for the server's responses.
 */
function refusal([status, code, message]: [number, string, string], conditions: readonly string[]): string[] {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return conditions.map(
    (condition) =>
      `http-request return status ${status} content-type application/xml string '${body}' hdr connection close hdr access-control-allow-origin * if ${condition}`,
  );
}
