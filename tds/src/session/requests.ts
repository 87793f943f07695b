import { type Message, packetTypes } from "../protocol/packet.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";
import { decodeRpcRequest } from "../protocol/rpc-request.ts";
import { decodeSqlBatch } from "../protocol/sql-batch.ts";
import type { WireFormat } from "../protocol/tds-version.ts";
import { writeResetConnection } from "../protocol/token.ts";
import {
  decodeTransactionManagerRequest,
  type TransactionManagerRequest,
} from "../protocol/transaction-manager-request.ts";
import { refuse } from "../parse/unsupported.ts";
import { sqlErrorOf } from "../run/errors.ts";
import { newFrame } from "../run/frame.ts";
import { runBatch } from "../run/interpreter.ts";
import { Results } from "../run/results.ts";
import type { RequestContext } from "../run/request-context.ts";
import type { Session } from "../run/session.ts";
import { callProcedure, callRpc } from "../run/system-procedures.ts";
import type { Response } from "./response.ts";

/** Serves one request. Errors of statements are part of the response; a ProtocolError ends the connection. */
export async function serveRequest(
  message: Message,
  session: Session,
  response: Response,
  format: WireFormat,
  signal: AbortSignal,
): Promise<void> {
  const isProcedure = message.type === packetTypes.rpc;
  const inTransaction = () => session.transaction.count > 0;
  const results = new Results({ response, format, isProcedure, inTransaction });
  const request: RequestContext = { session, results, frame: newFrame(), signal, call: callProcedure };
  const { backend } = session;
  try {
    if (message.isIgnored) {
      // The client canceled the request while it sent it, and waits for the end of a response.
      results.endCanceled();
      return;
    }
    if (message.resetsConnection) {
      await session.reset(message.keepsTransaction);
      writeResetConnection(response.tokens);
    }
    if (!session.isNotified) session.catalog.clear();
    backend.attention = signal;
    await dispatch(message, format, request);
  } catch (error) {
    if (!signal.aborted) throw error;
    results.endCanceled();
  } finally {
    backend.attention = undefined;
    session.tryDepth = 0;
    session.caught.length = 0;
  }
}

async function dispatch(message: Message, format: WireFormat, request: RequestContext): Promise<void> {
  switch (message.type) {
    case packetTypes.sqlBatch:
      await runBatch(decodeSqlBatch(message.payload, format), request);
      request.signal.throwIfAborted();
      request.results.endBatch();
      return;
    case packetTypes.rpc: {
      const calls = decodeRpcRequest(message.payload, format);
      if (calls.length === 0) request.results.endProcedure(false, true);
      for (const [index, { procedure, parameters }] of calls.entries()) {
        const list = parameters.map(({ name, type, value, isOutput }) => ({ name, type, value, isOutput }));
        await callRpc(procedure, list, index === calls.length - 1, { ...request, frame: newFrame() });
        request.signal.throwIfAborted();
      }
      return;
    }
    case packetTypes.transactionManager:
      await runTransactionRequest(decodeTransactionManagerRequest(message.payload, format), request);
      return;
    case packetTypes.bulkLoad: {
      request.results.error(refuse("statement", 1, "bulk load"));
      request.results.done({ isError: true });
      request.results.endBatch();
      return;
    }
    default:
      throw new ProtocolError(`unexpected message of type ${message.type} after the sign-in`);
  }
}

async function runTransactionRequest(
  request: TransactionManagerRequest,
  { session, results }: RequestContext,
): Promise<void> {
  const { transaction } = session;
  try {
    switch (request.kind) {
      case "begin":
        await transaction.begin(results, request.name, request.isolation);
        break;
      case "commit":
        await transaction.commit(results);
        break;
      case "rollback":
        await transaction.rollback(results, request.name === "" ? undefined : request.name);
        break;
      case "save":
        await transaction.save(request.name);
        break;
      case "distributed":
        throw refuse("distributed transactions", 1);
    }
    if ("next" in request && request.next !== undefined)
      await transaction.begin(results, request.next.name, request.next.isolation);
    results.done({});
  } catch (error) {
    results.error(sqlErrorOf(error, 1));
    results.done({ isError: true });
  }
  results.endBatch();
}
