"""The tables of the curator's store, as the migrations that make them, in order."""

MIGRATIONS = (
    """
CREATE TABLE studies (
    study BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, document BLOB NOT NULL, created INTEGER NOT NULL,
    outcome TEXT, reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE rosters (party TEXT NOT NULL, study BLOB NOT NULL, key TEXT NOT NULL, PRIMARY KEY (party, study));
CREATE TABLE enrolments (
    study BLOB NOT NULL, party TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (study, party)
);
CREATE TABLE transcripts (study BLOB PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE queries (
    study BLOB NOT NULL, label TEXT NOT NULL, sequence INTEGER NOT NULL, body BLOB NOT NULL,
    opened INTEGER NOT NULL, answer BLOB, PRIMARY KEY (study, label)
);
CREATE TABLE notes (
    study BLOB NOT NULL, label TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (study, label)
);
CREATE TABLE submissions (
    study BLOB NOT NULL, label TEXT NOT NULL, party TEXT NOT NULL, header BLOB NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (study, label, party)
);
CREATE TABLE replies (
    study BLOB NOT NULL, party TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (study, party, kind)
);
CREATE TABLE heads (
    identity BLOB NOT NULL, ledger BLOB NOT NULL, sequence INTEGER NOT NULL, hash BLOB NOT NULL,
    signature BLOB NOT NULL, PRIMARY KEY (identity, ledger)
);
""",
    # A party's moves are found without a look at the studies that it is done with, however many have ended. An
    # acknowledgement from before a study's end is forgotten, and so is an answer that came after it. A query from
    # before queries were signed has no signature, and no party answers it any more.
    """
ALTER TABLE queries ADD COLUMN signature BLOB NOT NULL DEFAULT x'';
ALTER TABLE rosters ADD COLUMN acknowledged INTEGER NOT NULL DEFAULT 0;
UPDATE rosters SET acknowledged = 1 WHERE EXISTS (
    SELECT 1 FROM replies JOIN studies USING (study)
    WHERE replies.study = rosters.study AND replies.party = rosters.party AND kind = 'acknowledged'
        AND outcome IS NOT NULL
);
DELETE FROM replies WHERE kind = 'acknowledged';
CREATE INDEX open_studies ON studies (study) WHERE outcome IS NULL;
CREATE INDEX unacknowledged ON rosters (party, study) WHERE acknowledged = 0;
CREATE INDEX roster_keys ON rosters (party, key);
UPDATE submissions SET payload = x'' WHERE study IN (SELECT study FROM studies WHERE outcome IS NOT NULL);
""",
    # Which key of a name followed which: a party's as it told them, the curator's own as it made them.
    """
CREATE TABLE rotations (
    name TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL, document BLOB NOT NULL, PRIMARY KEY (name, old)
);
CREATE INDEX rotated_keys ON rotations (name, new);
""",
    # A party is told of ends by the key that their rosters pin. Enrolments from before they stated heads of ledgers are
    # of no use any more, and neither are heads that are larger than heads can be.
    """
DROP INDEX unacknowledged;
CREATE INDEX unacknowledged ON rosters (party, key, study) WHERE acknowledged = 0;
DELETE FROM enrolments;
DELETE FROM heads WHERE length(identity) <> 32 OR length(ledger) <> 32 OR length(hash) <> 32 OR length(signature) <> 64;
""",
    """
CREATE TABLE losses (
    study BLOB NOT NULL, party TEXT NOT NULL, sequence INTEGER NOT NULL, reason TEXT NOT NULL,
    declared INTEGER NOT NULL, PRIMARY KEY (study, party)
);
CREATE TABLE skips (study BLOB NOT NULL, label TEXT NOT NULL, PRIMARY KEY (study, label));
""",
)
