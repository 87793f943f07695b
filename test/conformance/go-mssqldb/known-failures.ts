/** Tests that panic on the front end, which ends the run, with their reasons. */
export const panicking: Readonly<Record<string, string>> = {
  TestLcidsFetching: "collations of code pages other than 1252 and UTF-8 are missing",
};

/** Tests that fail, with their reasons. */
export const knownFailures: Readonly<Record<string, string>> = {
  TestAccessTokenConnectorFailsToConnectIfNoAccessToken: "needs the name of a server of Azure; Entra is missing",
  TestBulkcopy: "geometry and geography are error 40524",
  TestBulkcopyWithGuidConversion: "geometry and geography are error 40524",
  TestBulkcopyIdentifierQuoting: "names of bulk loads in quotes",
  TestBulkcopyDestinationIsASingleObject: "a name of a database that does not exist is error 911, not 208",
  TestSessionInitSQL: "@@OPTIONS is constant",
  TestParameterValues: "a datetimeoffset loses its offset",
  TestMessageQueue: "a message precedes the result set that it follows",
  TestMessageQueueWithErrors: "a message precedes the result set that it follows",
  TestSprocWithCursorNoResult: "FETCH without INTO",
  TestSelect: "the seventh digit of seconds",
  TestSelectWithGuidConversion: "the seventh digit of seconds",
  TestSelectDateTimeOffset: "the seventh digit of seconds",
  TestSelectNewTypes: "the seventh digit of seconds",
  TestMultipleErrors: "error 1750 does not follow that of a constraint",
  TestDateTimeParam: "the seventh digit of seconds",
  TestSetLanguage: "SET LANGUAGE of another language",
  TestColumnTypeIntrospection: "hierarchyid, and static methods of types (::)",
  TestContext: "DBCC is error 40510",
  TestDisconnect5: "an error of severity 20 does not end the connection",
  TestCancelDuringRollback: "sys.dm_tran_session_transactions is missing",
  TestChangePassword: "CREATE LOGIN is error 40510",
  TestLoginWithColumnEncryption: "Always Encrypted is missing",
  TestTVP: "the seventh digit of seconds, times near 24:00",
  TestTVP_WithTag: "the seventh digit of seconds, times near 24:00",
  TestTVP_WithGuidConversion: "the seventh digit of seconds, times near 24:00",
  TestTVP_WithTagAndGuidConversion: "the seventh digit of seconds, times near 24:00",
};
