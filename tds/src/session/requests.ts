import { moduleStates } from "../emit/module-body.ts";
import { refuse } from "../parse/features.ts";
import type { Notice } from "../run/backend.ts";
import { packetTypes } from "../protocol/packet.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";
import { decodeRpcRequest, type RpcCall } from "../protocol/rpc-request.ts";
import { decodeSqlBatch } from "../protocol/sql-batch.ts";
import { TooManyRows } from "../protocol/table-value.ts";
import type { WireFormat } from "../protocol/tds-version.ts";
import { writeResetConnection } from "../protocol/token.ts";
import {
  decodeTransactionManagerRequest,
  type TransactionManagerRequest,
} from "../protocol/transaction-manager-request.ts";
import { CanceledLoad, runBulkLoad } from "../run/bulk-load.ts";
import { endsTransaction, sqlErrorOf } from "../run/errors.ts";
import { newCallFrame } from "../run/call-frame.ts";
import { runBatch } from "../run/interpreter.ts";
import type { RequestContext } from "../run/request-context.ts";
import { Results } from "../run/results.ts";
import type { Session } from "../run/session.ts";
import type { SqlError } from "../run/sql-error.ts";
import { callProcedure, callRpc } from "../run/system-procedures.ts";
import type { Request } from "./message-source.ts";
import type { Response } from "./response.ts";

/** Serves one request. Errors of statements are part of the response; a ProtocolError ends the connection. */
export async function serveRequest(
  message: Request,
  session: Session,
  response: Response,
  format: WireFormat,
  signal: AbortSignal,
): Promise<void> {
  const isProcedure = message.type === packetTypes.rpc;
  const inTransaction = () => session.transaction.count > 0;
  const { usage } = session;
  const onError = (error: SqlError) => usage.error(error);
  const results = new Results({ response, format, isProcedure, inTransaction, onError });
  const request: RequestContext = { session, results, frame: newCallFrame(), signal, call: callProcedure };
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
    backend.onNotice = (notice) => reportNotice(notice, session, results);
    await dispatch(message, format, request, results);
  } catch (error) {
    if (!signal.aborted) throw error;
    results.endCanceled();
  } finally {
    backend.attention = undefined;
    backend.onNotice = undefined;
    session.tryDepth = 0;
    session.caught.length = 0;
  }
}

/** Sends PRINT and RAISERROR of a trigger to the client. */
function reportNotice({ code, message, detail }: Notice, session: Session, results: Results): void {
  if (code !== moduleStates.message) return;
  const [number = 0, severity = 0, state = 1] = (detail ?? "").split(",").map(Number);
  results.message({ number, severity, state, message, line: 1 });
  if (severity > 10) session.lastError = number;
}

async function dispatch(
  message: Request,
  format: WireFormat,
  request: RequestContext,
  results: Results,
): Promise<void> {
  switch (message.type) {
    case packetTypes.sqlBatch:
      request.session.usage.batches += 1;
      await runBatch(decodeSqlBatch(message.payload, format), request);
      request.signal.throwIfAborted();
      results.endBatch();
      return;
    case packetTypes.rpc: {
      let calls: readonly RpcCall[];
      try {
        calls = decodeRpcRequest(message.payload, format);
      } catch (error) {
        if (!(error instanceof TooManyRows)) throw error;
        results.error(sqlErrorOf(error, 1));
        results.endProcedure(true, true);
        return;
      }
      if (calls.length === 0) results.endProcedure(false, true);
      request.session.usage.batches += calls.length;
      for (const [index, { procedure, parameters }] of calls.entries()) {
        const list = parameters.map((parameter) => ({ ...parameter }));
        await callRpc(procedure, list, index === calls.length - 1, results, { ...request, frame: newCallFrame() });
        request.signal.throwIfAborted();
      }
      return;
    }
    case packetTypes.transactionManager:
      await runTransactionRequest(decodeTransactionManagerRequest(message.payload, format), request, results);
      return;
    case packetTypes.bulkLoad:
      await serveBulkLoad(message, format, request, results);
      return;
    default:
      throw new ProtocolError(`unexpected message of type ${message.type} after the sign-in`);
  }
}

async function serveBulkLoad(
  { body }: Request,
  format: WireFormat,
  request: RequestContext,
  results: Results,
): Promise<void> {
  if (body === undefined) throw new ProtocolError("a bulk load has no rows");
  const { session } = request;
  try {
    await runBulkLoad(body, format, request);
  } catch (error) {
    if (request.signal.aborted || error instanceof ProtocolError) throw error;
    if (error instanceof CanceledLoad) {
      results.endCanceled();
      return;
    }
    const failure = sqlErrorOf(error, 1);
    session.lastError = failure.number;
    session.rowCount = 0;
    if (session.transaction.count > 0 && (session.options.xactAbort || endsTransaction(failure)))
      await session.transaction.rollback(results);
    results.error(failure);
    results.done({ isError: true });
  }
  results.endBatch();
}

async function runTransactionRequest(
  request: TransactionManagerRequest,
  { session }: RequestContext,
  results: Results,
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
