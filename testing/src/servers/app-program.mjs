// The program of test images: an HTTP server that reports its release, and tries to leave its container on request.
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { connect, createServer as createNetServer } from "node:net";

const { RELEASE = "", ENDS = "", PORT = "8080", NOTE = "", ANSWERS = "200", LISTEN_ADDRESS } = process.env;
console.log(`release ${RELEASE} starts`);
if (ENDS !== "") {
  for (let line = 1; line <= 30; line += 1) console.log(`line ${line}`);
  process.exit(Number(ENDS));
}

/** `connected`, or the code of the error. */
function tryConnect(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 });
    const end = (outcome) => {
      socket.destroy();
      resolve(outcome);
    };
    socket.once("connect", () => end("connected"));
    socket.once("timeout", () => end("timeout"));
    socket.once("error", ({ code }) => end(code));
  });
}

function trySh(script) {
  return new Promise((resolve) => {
    execFile("/bin/sh", ["-c", script], (error, stdout, stderr) => resolve(`${error?.code ?? 0} ${stdout}${stderr}`));
  });
}

let client;

async function rowsOf(sql) {
  const { default: pg } = await import("pg");
  if (client === undefined) {
    const made = new pg.Client({ connectionString: process.env.DATABASE_URL });
    made.on("error", () => {
      client = undefined;
    });
    await made.connect();
    client = made;
  }
  return client.query(sql).then(
    ({ rows }) => rows,
    ({ message }) => message,
  );
}

/** Response for each path. */
const handlers = new Map(
  Object.entries({
  "/health": () => ({ status: Number(ANSWERS) }),
  "/": () => ({ body: { release: RELEASE, note: NOTE, user: process.getuid?.(), pid: process.pid } }),
  "/slow": async () => {
    console.log("a slow request begins");
    // Time: the delay of a slow response.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { body: { release: RELEASE } };
  },
  "/connect": async (query) => ({ body: await tryConnect(query.get("host"), Number(query.get("port"))) }),
  "/sh": async (query) => ({ body: await trySh(query.get("script")) }),
  // Rows of a statement, by a connection that the program had before or by a new one.
  "/query": async (query) => ({ body: await rowsOf(query.get("sql")) }),
  // Number of bytes of the request's body.
  "/upload": async (_query, request) => {
    let bytes = 0;
    for await (const part of request) bytes += part.length;
    return { body: bytes };
  },
  "/environment": (query) => ({ body: process.env[query.get("name")] ?? null }),
  "/exit": (query) => process.exit(Number(query.get("code") ?? 1)),
  // Prints the text, and no more.
  "/print": async (query) => {
    process.stdout.write(query.get("text"));
    return {};
  },
  "/status": () => ({ body: readFileSync("/proc/self/status", "utf8") }),
  "/limits": () => ({ body: { memoryBytes: process.constrainedMemory() } }),
  "/processes": () => ({ body: readdirSync("/proc").filter((name) => /^\d+$/.test(name)) }),
  // Writes to more and more memory until the kernel ends the program.
  "/memory": () => {
    const blocks = [];
    for (;;) blocks.push(Buffer.alloc(64 << 20, 1));
  },
  // Starts processes until one is refused, or the limit is reached; resolves with their number, and ends them.
  "/bomb": async (query) => {
    const started = [];
    let refused = false;
    while (!refused && started.length < Number(query.get("limit"))) {
      const child = spawn("/bin/sleep", ["100"], { stdio: "ignore" });
      child.on("error", () => undefined);
      if (child.pid === undefined) refused = true;
      else started.push(child);
    }
    const closed = started.map((child) => new Promise((resolve) => child.once("close", resolve)));
    for (const child of started) child.kill("SIGKILL");
    await Promise.all(closed);
    return { body: { refused, started: started.length } };
  },
}),
);

// The first process of a namespace gets no signal that it does not handle.
process.on("SIGTERM", () => {
  console.log(`release ${RELEASE} stops`);
  process.exit(0);
});
const server = createServer((request, response) => {
  respond(request, response).catch((error) => response.destroy(error));
});
// An upgraded connection gets back every byte; a WebSocket gets back its messages.
server.on("upgrade", (request, socket) => {
  socket.on("error", () => socket.destroy());
  const key = request.headers["sec-websocket-key"];
  if (key === undefined) {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    socket.pipe(socket);
    return;
  }
  // RFC 6455, 4.2.2
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket";
  socket.write(`${head}\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
  socket.on("data", (frame) => {
    // A short masked frame in one piece.
    const length = frame[1] & 0x7f;
    const mask = frame.subarray(2, 6);
    const payload = frame.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]);
    socket.write(Buffer.concat([Buffer.from([frame[0], length]), payload]));
  });
});

// gRPC: every method returns each message that it gets.
const grpc = createHttp2Server();
grpc.on("sessionError", () => undefined);
grpc.on("stream", (stream) => {
  stream.on("error", () => undefined);
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.pipe(stream);
});

// One port for both: connections of HTTP/2 begin with PRI.
const listener = createNetServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.once("data", (first) => {
    socket.pause();
    socket.unshift(first);
    (first.toString("latin1", 0, 3) === "PRI" ? grpc : server).emit("connection", socket);
    process.nextTick(() => socket.resume());
  });
});
listener.listen(Number(PORT), LISTEN_ADDRESS, () => console.log(`release ${RELEASE} listens`));

async function respond(request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://app");
  if (pathname === "/events") {
    // Server-sent events, without an end.
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${RELEASE}\n\n`);
    return;
  }
  const { status = 200, body = "" } = (await handlers.get(pathname)?.(searchParams, request)) ?? { status: 404 };
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
