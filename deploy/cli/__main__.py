"""`python -m synod.deploy.cli`: the program `synod`, for whoever starts it by its interpreter."""

from synod.deploy.cli.main import main

main()
