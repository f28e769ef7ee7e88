-- Read-only views over a countermark ledger, for those who would rather ask with SQL.
--
--     countermark query views > views.sql
--     sqlite3 -readonly -init views.sql countermark.db
--
-- They are temporary: nothing is written to the ledger, and the file may be open for reading only. SQLite 3.37 or later.
-- A view shows what is stored. It proves nothing, judges no signature and derives no status: what a statement says of itself is in the
-- columns that begin with `stated_`. Ask `countermark query` and `countermark gate` for answers, and `countermark verify ledger` whether
-- these rows are all there are and agree with what was signed.

-- Every entry: when it was admitted, what it is, and whether it is one that the gate always reads.
CREATE TEMP VIEW entries AS
SELECT entry.idx,
       strftime('%Y-%m-%dT%H:%M:%SZ', entry.admitted_ms / 1000, 'unixepoch') AS admitted,
       CASE entry.kind WHEN 1 THEN 'statement' WHEN 2 THEN 'key event' WHEN 3 THEN 'document' WHEN 4 THEN 'withheld'
                       WHEN 5 THEN 'import marker' WHEN 6 THEN 'incarnation' END AS kind,
       statement.predicate_type,
       substr(entry.leaf, 3, 1) = x'01' AS notice,
       'payload:sha256:' || lower(hex(entry.payload_sha256)) AS payload,
       (SELECT size FROM payload WHERE sha256 = entry.payload_sha256) AS bytes
  FROM entry LEFT JOIN statement ON statement.idx = entry.idx;

-- Every digest that an entry is found by, and as what: subject, tuple, alias, component, rests-on, key, document.
CREATE TEMP VIEW subjects AS
SELECT idx, role, name, CASE WHEN kind LIKE 'git-%' THEN kind || ':' ELSE kind || ':sha256:' END || lower(hex(digest)) AS digest
  FROM subject;

-- Every signature that came with an entry. `OK` held when the entry was admitted; others are kept with the reason.
CREATE TEMP VIEW signatures AS
SELECT idx, pos, 'spki:sha256:' || lower(hex(key_sha256)) AS key, keyid, outcome FROM signature;

-- Keys that came, left or were revoked.
CREATE TEMP VIEW key_events AS
SELECT idx, event, principal, role, 'spki:sha256:' || lower(hex(key_sha256)) AS key,
       strftime('%Y-%m-%dT%H:%M:%SZ', since_ms / 1000, 'unixepoch') AS since, reason
  FROM key_event;

-- Every statement with its predicate as JSON text.
CREATE TEMP VIEW statements AS
SELECT statement.idx, statement.predicate_type,
       replace(replace(statement.predicate_type, 'https://countermark.dev/predicate/', ''), '/v1', '') AS predicate_name,
       json_extract(CAST(payload.data AS TEXT), '$.predicate') AS predicate
  FROM statement
  JOIN entry ON entry.idx = statement.idx
  JOIN payload ON payload.sha256 = entry.payload_sha256;

-- Receipts as they state themselves, one row for each cell that was tested.
CREATE TEMP VIEW receipts AS
SELECT statements.idx,
       json_extract(predicate, '$.scope.image') AS image,
       json_extract(predicate, '$.capability') AS capability,
       json_extract(predicate, '$.outcome') AS stated_outcome,
       json_extract(predicate, '$.basis') AS stated_basis,
       json_extract(predicate, '$.claim') AS claim,
       json_extract(predicate, '$.scope.topology.tp') AS tp,
       json_extract(predicate, '$.scope.topology.dcp') AS dcp,
       json_extract(cell.value, '$.context_tokens') AS context_tokens,
       json_extract(cell.value, '$.concurrency') AS concurrency,
       json_extract(cell.value, '$.draft_tokens') AS draft_tokens,
       json_extract(predicate, '$.observed.to') AS observed_to
  FROM statements, json_each(predicate, '$.scope.cells') AS cell
 WHERE predicate_type = 'https://countermark.dev/predicate/qualification-receipt/v1';

-- Rejections, retractions and supersessions, and what each is about. None of them is weighed here.
CREATE TEMP VIEW negatives AS
SELECT statements.idx, predicate_name, subjects.digest AS about,
       json_extract(predicate, '$.capability') AS capability,
       json_extract(predicate, '$.reason') AS reason
  FROM statements JOIN subjects ON subjects.idx = statements.idx AND subjects.role = 'subject'
 WHERE predicate_name IN ('rejection', 'retraction', 'supersession');

-- Decisions as they were recorded.
CREATE TEMP VIEW decisions AS
SELECT idx,
       json_extract(predicate, '$.core.verdict') AS stated_verdict,
       json_extract(predicate, '$.core.mode') AS mode,
       json_extract(predicate, '$.core.subject') AS image,
       json_extract(predicate, '$.core.inputs.policy.id') AS policy,
       json_extract(predicate, '$.core.inputs.policy.version') AS policy_version,
       json_extract(predicate, '$.core.effective_time') AS effective_time,
       json_extract(predicate, '$.core.ledger.size') AS ledger_size
  FROM statements
 WHERE predicate_type = 'https://countermark.dev/predicate/decision/v1';

-- What images were built from, as recorded.
CREATE TEMP VIEW components AS
SELECT image.idx, image.digest AS image, component.name AS component, component.digest
  FROM subjects AS image JOIN subjects AS component ON component.idx = image.idx AND component.role = 'component'
 WHERE image.role = 'subject';

-- What was refused and why. Nobody vouches for these rows.
CREATE TEMP VIEW refused AS
SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', received_ms / 1000, 'unixepoch') AS received, lower(hex(sha256)) AS sha256, code, reason, subjects,
       predicate_type
  FROM quarantine;
