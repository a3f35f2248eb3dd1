// Words of the query language, for colors and completion. A test compares the functions with those of the server.
export const KEYWORDS =
  "ALL AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS FIRST FROM GROUP IN JOIN LAST LEFT LIKE LIMIT NOT " +
  "OFFSET OR ORDER RANK RIGHT SELECT TOP VALUE WHERE";

export const LITERALS = "true false null undefined";

export const FUNCTIONS =
  "ABS ACOS AGO ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX " +
  "ARRAY_MEDIAN ARRAY_MIN ARRAY_SLICE ARRAY_SUM ASIN ATAN ATN2 AVG CEILING CHOOSE CONCAT CONTAINS CONTAINS_ALL_CI " +
  "CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS COS COT COUNT DateTimeAdd DateTimeBin DateTimeDiff " +
  "DateTimeFormat DateTimeFromParts DateTimePart DateTimeToTicks DateTimeToTimestamp DAY DEGREES DocumentId " +
  "ENDSWITH EXP FLOOR FullTextContains FullTextContainsAll FullTextContainsAny FullTextScore GetCurrentDateTime " +
  "GetCurrentDateTimeStatic GetCurrentTicks GetCurrentTicksStatic GetCurrentTimestamp GetCurrentTimestampStatic IIF " +
  "INDEX_OF IntAdd IntBitAnd IntBitLeftShift IntBitNot IntBitOr IntBitRightShift IntBitXor IntDiv IntMod IntMul " +
  "IntSub IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT " +
  "IS_PRIMITIVE IS_STRING LastIndexOf LastSubstringAfter LastSubstringBefore LEFT LENGTH LOG LOG10 LOWER LTRIM MAX " +
  "MIN MONTH NOW NumberBin ObjectToArray PI POWER RADIANS RAND RegexExtract RegexExtractAll RegexMatch REPLACE " +
  "REPLICATE REVERSE RIGHT ROUND RRF RTRIM SetDifference SetEqual SetIntersect SetUnion SIGN SIN SQRT SQUARE " +
  "ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN STARTSWITH StringEquals StringJoin " +
  "StringSplit StringToArray StringToBoolean StringToNull StringToNumber StringToObject SUBSTRING SubstringAfter " +
  "SubstringBefore SUM TAN TicksToDateTime TimestampToDateTime ToString TRIM TRUNC UPPER VectorDistance YEAR";
