"""What both sides say to each other: queries, answers, plan, transcript, submissions, manifest."""
