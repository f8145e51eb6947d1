"""What `import synod` offers: releases, simulations, drafts, forecasts and evaluations in Python."""
